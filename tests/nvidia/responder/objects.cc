#include "objects.h"

#include <pthread.h>

#include <map>
#include <vector>

#include "channel.h"

namespace responder {
namespace {

// libcuda creates about ten objects per device and about a hundred per context.
constexpr size_t max_objects = 1 << 16;
using Key = std::pair<uint32_t, uint32_t>;
std::map<Key, Object>& objects() {
  static auto* const made = new std::map<Key, Object>;
  return *made;
}
uint32_t next_client = 0xc1d00001, next_handle = 0xcaf00001;
pthread_mutex_t objects_mutex = PTHREAD_MUTEX_INITIALIZER;

}  // namespace

ObjectsLocked::ObjectsLocked() { pthread_mutex_lock(&objects_mutex); }
ObjectsLocked::~ObjectsLocked() { pthread_mutex_unlock(&objects_mutex); }

Object* find(uint32_t client, uint32_t handle) {
  const auto it = objects().find({client, handle});
  return it == objects().end() ? nullptr : &it->second;
}

bool insert(const Object& object) {
  if (objects().size() >= max_objects) return false;
  return objects().insert({{object.client, object.handle}, object}).second;
}

void remove(uint32_t client, uint32_t handle) {
  const auto it = objects().find({client, handle});
  if (it == objects().end()) return;
  const Object gone = it->second;
  objects().erase(it);
  std::vector<uint32_t> below;
  for (auto i = objects().lower_bound({client, 0}); i != objects().end() && i->first.first == client; ++i)
    if (i->second.parent == handle) below.push_back(i->second.handle);
  for (const uint32_t one : below) remove(client, one);
  if (gone.channel != nullptr) close_channel(gone.channel);
  if (gone.memory != nullptr) release(gone.memory);
}

uint32_t unused_client() { return next_client++; }

uint32_t unused_handle(uint32_t client) {
  while (find(client, next_handle) != nullptr) ++next_handle;
  return next_handle++;
}

Memory* memory_of(uint32_t client, uint32_t handle) {
  const ObjectsLocked locked;
  const Object* const object = find(client, handle);
  return object != nullptr && object->memory != nullptr ? share(object->memory) : nullptr;
}

}  // namespace responder
