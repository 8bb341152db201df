#include "exports.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <map>
#include <mutex>

#include "control_rows.h"
#include "memory.h"
#include "objects.h"

namespace responder {
namespace {

struct Export {
  uint32_t class_;
  unsigned gpu;
  Memory* memory;
};
using FileKey = std::pair<dev_t, ino_t>;
constexpr FileKey no_file = {0, 0};
struct Exports {
  std::mutex mutex;
  std::map<FileKey, Export> by_file;
};
Exports& exports() {
  static Exports* const made = new Exports;
  return *made;
}

FileKey key_of(int file) {
  struct stat status;
  return fstat(file, &status) == 0 ? FileKey{status.st_dev, status.st_ino} : no_file;
}

// Returns whether the process has no other descriptor of the file.
bool is_last(int file, const FileKey& key) {
  DIR* const all = opendir("/proc/self/fd");
  bool has_other = false;
  while (const dirent* const one = all != nullptr && !has_other ? readdir(all) : nullptr) {
    const int other = atoi(one->d_name);
    has_other = other != file && one->d_name[0] != '.' && key_of(other) == key;
  }
  if (all != nullptr) closedir(all);
  return !has_other;
}

// NV0000_CTRL_OS_UNIX_EXPORT_OBJECT: the type, and the handles of the device, of the parent and of the
// object.
constexpr uint32_t type_object = 1;

}  // namespace

Status export_object(const Control& c) {
  const FileKey key = key_of(field<int32_t>(c, 16));
  if (key == no_file || word(c, 0) != type_object) return invalid_argument;
  Export made = {};
  {
    const ObjectsLocked locked;
    const Object* const object = find(c.client, word(c, 3));
    if (object == nullptr || object->memory == nullptr) return invalid_object_handle;
    made = {object->class_, object->gpu, share(object->memory)};
  }
  Exports& all = exports();
  const std::lock_guard locked(all.mutex);
  if (all.by_file.insert({key, made}).second) return ok;
  release(made.memory);
  return insert_duplicate_name;
}

Status export_info(const Control& c) {
  Exports& all = exports();
  const std::lock_guard locked(all.mutex);
  const auto it = all.by_file.find(key_of(field<int32_t>(c, 0)));
  if (it == all.by_file.end()) return invalid_argument;
  word(c, 1) = it->second.gpu;
  word(c, 2) = ~0u;            // Not a part of a device (MIG).
  field<uint16_t>(c, 12) = 1;  // One object.
  return ok;
}

Status import_object(const Control& c) {
  const ObjectsLocked objects_locked;
  Exports& all = exports();
  const std::lock_guard locked(all.mutex);
  const auto it = all.by_file.find(key_of(field<int32_t>(c, 0)));
  if (it == all.by_file.end()) return invalid_argument;
  const uint32_t parent = word(c, 3), handle = word(c, 4);
  if (find(c.client, parent) == nullptr) return invalid_object_parent;
  const Export& from = it->second;
  if (!insert({c.client, handle, parent, from.class_, from.gpu, 0, from.memory, nullptr}))
    return insert_duplicate_name;
  share(from.memory);
  return ok;
}

void forget_export(int file) {
  Memory* last = nullptr;
  {
    Exports& all = exports();
    const std::lock_guard locked(all.mutex);
    if (all.by_file.empty()) return;
    const FileKey key = key_of(file);
    const auto it = all.by_file.find(key);
    if (it == all.by_file.end() || !is_last(file, key)) return;
    last = it->second.memory;
    all.by_file.erase(it);
  }
  release(last);  // Without the lock, because it may call close(), which calls this.
}

}  // namespace responder
