// The objects that clients of the resource manager have created, by handle.
#pragma once

#include <cstdint>

#include "ioctls.h"
#include "memory.h"

namespace responder {

struct Channel;

struct Object {
  uint32_t client, handle, parent, class_;
  unsigned gpu;
  uint32_t engine;   // Number of the copy engine, for its objects.
  Memory* memory;    // Set for memory objects, otherwise null.
  Channel* channel;  // Set for channels, otherwise null.
};

// Must be held while objects are used.
struct ObjectsLocked {
  ObjectsLocked();
  ~ObjectsLocked();
};

// The caller of these functions must hold ObjectsLocked.
Object* find(uint32_t client, uint32_t handle);
// Returns false if there are too many objects.
bool insert(const Object& object);
// Removes an object and all objects below it, whose parent is then gone.
void remove(uint32_t client, uint32_t handle);
// Returns a handle that no client has.
uint32_t unused_client();
uint32_t unused_handle(uint32_t client);

// Returns an object's memory with a reference for the caller; null if the object has none.
Memory* memory_of(uint32_t client, uint32_t handle);

}  // namespace responder
