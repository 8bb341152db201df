// carve-sim create DIR SPEC [--force] [--seed N]: writes the files of a set. The tool writes all files into a
// new directory inside DIR and renames them into place file by file. It renames set.bin last, since clients
// look for set.bin.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iostream>
#include <random>

#include "sim/set/set.h"
#include "sim/tool/profile.h"
#include "sim/tool/tool_verbs.h"

namespace carve::sim {
namespace {

namespace fs = std::filesystem;

// Durations of kernels for which the profile's default is not suitable. The libraries read this file
// (sim/image/kernel_rules.h).
constexpr const char udev_rules[] =
    "# The duration of a kernel is set by the first line whose regular expression (POSIX extended, the whole "
    "name)\n"
    "# matches applies.\n"
    "#   EXPRESSION  DURATION        a constant: 250ns, 20us, 3ms, 1s\n"
    "#   EXPRESSION  argN * DURATION argument N of the launch times a duration\n"
    "# If no line matches, the duration is the profile's launch_ns + waves * wave_ns.\n"
    "carve_spin    arg0 * 1ns\n"
    "carve_spin.*  arg0 * 1ns\n";

template <class T>
class Mapped {
 public:
  explicit Mapped(const fs::path& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 || fchmod(fd, 0666) != 0 || ftruncate(fd, sizeof(T)) != 0)
      throw Refused(path.string() + ": " + std::strerror(errno));
    void* p = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED) throw Refused(path.string() + ": " + std::strerror(errno));
    value_ = static_cast<T*>(p);
  }
  ~Mapped() { munmap(value_, sizeof(T)); }
  T* operator->() { return value_; }

 private:
  T* value_;
};

void write_device(const fs::path& path, Facts f, unsigned index, std::mt19937_64& random) {
  Mapped<Device> d(path);
  f.index = f.minor = index;
  f.board_id = (index + 1) << 8;
  for (uint8_t& b : f.uuid) b = static_cast<uint8_t>(random());
  f.uuid[6] = static_cast<uint8_t>(0x40 | (f.uuid[6] & 0x0f));  // RFC 4122: version 4,
  f.uuid[8] = static_cast<uint8_t>(0x80 | (f.uuid[8] & 0x3f));  // variant 1.
  std::snprintf(f.serial, sizeof f.serial, "%013llu",
                static_cast<unsigned long long>(1'320'000'000'000 + random() % 9'999'999'999));
  std::snprintf(f.vbios, sizeof f.vbios, "94.02.75.%02X.01", index & 0xff);
  f.pci_bus = 0x17 + 0x20 * (index % 7) + index / 7;
  d->magic = device_magic;
  d->version = layout_version;
  d->file_bytes = sizeof(Device);
  d->facts = f;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&d->lock, &attributes);
  d->engine.owner = d->engine.next_owner = -1;
  d->engine.now_ns = d->engine.accounted_ns = now_ns();
  d->engine.window.start_ns = d->engine.copy_window.start_ns = d->engine.now_ns;
  for (CopyEngine& copy : d->engine.copy) copy.context = copy.channel = -1;
}

bool in_use(const fs::path& dir) {
  Set old;
  if (open_set(dir.c_str(), &old) != Opened::yes) return false;
  for (uint32_t i = 0; i < max_clients; ++i)
    if (alive(old, i, old.file->clients[i].generation, nullptr)) return true;
  return false;
}

}  // namespace

int create(const Arguments& arguments) {
  if (arguments.words.size() != 2)
    throw Usage("create takes a directory and a specification, for example: create /run/simgpu a10x2");
  const fs::path dir = arguments.words[0];
  const Plan plan = read_spec(arguments.words[1]);
  if (fs::exists(dir) && !fs::is_directory(dir)) throw Refused(dir.string() + " is not a directory");
  const bool force = arguments.options.contains("force");
  if (fs::exists(dir / "set.bin")) {
    if (!force && in_use(dir))
      throw Refused(dir.string() + " is in use (carve-sim show " + dir.string() +
                    " lists its processes); stop these programs, or pass --force");
  } else if (fs::exists(dir) && !fs::is_empty(dir) && !force) {
    throw Refused(dir.string() + " holds other files; choose an empty directory, or pass --force");
  }
  // Every process may open these devices, whatever the umask. An existing directory keeps its mode.
  if (fs::create_directories(dir)) fs::permissions(dir, fs::perms(0755));
  const fs::path fresh = dir / (".new." + std::to_string(getpid()));
  fs::remove_all(fresh);
  if (!fs::create_directory(fresh)) throw Refused("cannot create " + fresh.string());

  std::random_device entropy;
  const auto seed = arguments.options.find("seed");
  std::mt19937_64 random(seed != arguments.options.end()
                             ? whole_number(seed->second, "--seed")
                             : (static_cast<uint64_t>(entropy()) << 32 | entropy()));
  for (unsigned i = 0; i < plan.devices.size(); ++i)
    write_device(fresh / ("device" + std::to_string(i) + ".bin"), plan.devices[i], i, random);
  {
    Mapped<SetFile> set(fresh / "set.bin");
    set->magic = set_magic;
    set->version = layout_version;
    set->device_count = static_cast<uint32_t>(plan.devices.size());
    set->cuda_version = plan.cuda_version;
    std::snprintf(set->driver_version, sizeof set->driver_version, "%s", plan.driver_version.c_str());
    std::snprintf(set->nvml_version, sizeof set->nvml_version, "%d.%s", plan.cuda_version / 1000,
                  plan.driver_version.c_str());
  }
  std::ofstream(fresh / "kernels.rules") << udev_rules;
  std::ofstream(fresh / "driver") << plan.driver << "\n";
  const std::ofstream log(fresh / "kernel.log");  // carve-sim fault appends to it.
  const std::ofstream empty(fresh / "clients.lock");
  chmod((fresh / "clients.lock").c_str(), 0666);
  for (const char* name : {"kernels.rules", "kernel.log", "driver"}) chmod((fresh / name).c_str(), 0644);

  for (const auto& entry : fs::directory_iterator(dir))
    if (entry.path().filename().string().starts_with("device")) fs::remove(entry.path());
  for (unsigned i = 0; i < plan.devices.size(); ++i) {
    const std::string name = "device" + std::to_string(i) + ".bin";
    fs::rename(fresh / name, dir / name);
  }
  for (const char* name : {"kernels.rules", "kernel.log", "clients.lock", "driver", "set.bin"})
    fs::rename(fresh / name, dir / name);
  fs::remove(fresh);
  // Any process may create shared memory.
  fs::remove_all(dir / "memory");
  fs::create_directory(dir / "memory");
  chmod((dir / "memory").c_str(), 0777);
  std::cout << dir.string() << ": " << plan.devices.size()
            << (plan.devices.size() == 1 ? " device" : " devices") << " (simulated)\n"
            << "Programs use it with SIMGPU_DIR=" << dir.string() << " and the libraries in "
            << library_directory(plan.driver).string() << " on LD_LIBRARY_PATH.\n";
  return 0;
}

}  // namespace carve::sim
