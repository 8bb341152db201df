// The objects that clients of the resource manager created, by handle.
#pragma once

#include <cstdint>

#include "ioctls.h"
#include "memory.h"

namespace responder {

struct Channel;

struct Object {
  uint32_t client, handle, parent, class_;
  unsigned gpu;
  uint32_t engine;   // Of objects of the copy engine: its number.
  Memory* memory;    // Of memory objects, otherwise null.
  Channel* channel;  // Of channels, otherwise null.
};

// Held while objects are used.
struct ObjectsLocked {
  ObjectsLocked();
  ~ObjectsLocked();
};

// The caller of these functions holds ObjectsLocked.
Object* find(uint32_t client, uint32_t handle);
// Returns false if there are too many objects.
bool insert(const Object& object);
// Removes an object and, because their parent is gone, all below it.
void remove(uint32_t client, uint32_t handle);
// Returns a handle that no client has.
uint32_t unused_client();
uint32_t unused_handle(uint32_t client);

// An object's memory with a reference for the caller; null if the object has none.
Memory* memory_of(uint32_t client, uint32_t handle);

}  // namespace responder
