#include "exports.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <map>
#include <mutex>

#include "control_rows.h"
#include "memory.h"
#include "objects.h"

namespace responder {
namespace {

constexpr size_t metadata_size = 64;  // NV0000_OS_UNIX_EXPORT_OBJECT_FD_BUFFER_SIZE.
struct Export {
  uint32_t class_;
  unsigned gpu;
  Memory* memory;
  uint8_t metadata[metadata_size];
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
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t most = 65536;
  const int end = static_cast<int>(limit.rlim_cur < most ? limit.rlim_cur : most);
  for (int other = 0; other < end; ++other)
    if (other != file && key_of(other) == key) return false;
  return true;
}

// NV0000_CTRL_OS_UNIX_EXPORT_OBJECTS_TO_FD_PARAMS.
constexpr size_t export_metadata = 10, export_objects_at = 76, export_count = 2124;
// NV0000_CTRL_OS_UNIX_GET_EXPORT_OBJECT_INFO_PARAMS.
constexpr size_t info_most = 12, info_metadata = 14;
// NV0000_CTRL_OS_UNIX_IMPORT_OBJECTS_FROM_FD_PARAMS.
constexpr size_t import_objects_at = 8, import_types = 520, import_count = 648, import_index = 650;
constexpr uint8_t type_vidmem = 1;  // NV0000_CTRL_CMD_OS_UNIX_IMPORT_OBJECT_TYPE_VIDMEM

}  // namespace

Status export_objects(const Control& c) {
  const FileKey key = key_of(field<int32_t>(c, 0));
  if (key == no_file) return invalid_argument;
  if (field<uint16_t>(c, export_count) != 1) return not_supported;
  Export made = {};
  memcpy(made.metadata, c.params + export_metadata, metadata_size);
  {
    const ObjectsLocked locked;
    const Object* const object = find(c.client, field<uint32_t>(c, export_objects_at));
    if (object == nullptr || object->memory == nullptr) return invalid_object_handle;
    made.class_ = object->class_;
    made.gpu = object->gpu;
    made.memory = share(object->memory);
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
  word(c, 2) = ~0u;  // Not a part of a device.
  field<uint16_t>(c, info_most) = 1;
  memcpy(c.params + info_metadata, it->second.metadata, metadata_size);
  return ok;
}

Status import_objects(const Control& c) {
  if (field<uint16_t>(c, import_count) != 1 || field<uint16_t>(c, import_index) != 0) return not_supported;
  const ObjectsLocked objects_locked;
  Exports& all = exports();
  const std::lock_guard locked(all.mutex);
  const auto it = all.by_file.find(key_of(field<int32_t>(c, 0)));
  if (it == all.by_file.end()) return invalid_argument;
  const uint32_t parent = field<uint32_t>(c, 4);
  if (find(c.client, parent) == nullptr) return invalid_object_parent;
  const Export& from = it->second;
  const Object object = {
      c.client, field<uint32_t>(c, import_objects_at), parent, from.class_, from.gpu, 0, from.memory,
      nullptr};
  if (!insert(object)) return insert_duplicate_name;
  share(from.memory);
  c.params[import_types] = type_vidmem;
  return ok;
}

void forget_export(int file) {
  Exports& all = exports();
  const std::lock_guard locked(all.mutex);
  if (all.by_file.empty()) return;
  const FileKey key = key_of(file);
  const auto it = all.by_file.find(key);
  if (it == all.by_file.end() || !is_last(file, key)) return;
  release(it->second.memory);
  all.by_file.erase(it);
}

}  // namespace responder
