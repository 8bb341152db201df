#include "cli/coverage.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

namespace carve::cli {
namespace {

// Patterns of the entry points that allocate device memory or submit work to the device (cuda-driver API
// reference, 11.8 to 13.0).
constexpr std::string_view looks_dangerous[] = {"cuMemAlloc*",
                                                "cuMemCreate*",
                                                "cuArray*Create*",
                                                "cuArray3DCreate*",
                                                "cuMipmappedArrayCreate*",
                                                "cuGraphAdd*",
                                                "cuLaunch*",
                                                "cuGraphLaunch*",
                                                "cuCtxCreate*",
                                                "cuGreenCtxCreate*",
                                                "cuImport*",
                                                "cuIpcOpen*",
                                                "cuMulticast*",
                                                "cuMemPool*",
                                                "cuMemImport*",
                                                "cuMemMap*",
                                                "cuDevicePrimaryCtxRetain*",
                                                "cuModuleLoad*",
                                                "cuLibraryLoad*",
                                                "cuGraphInstantiate*",
                                                "cuGraphUpload*",
                                                "cuExternalMemory*",
                                                "cuMemExport*"};

// A view of an ELF file. Reads outside its bounds return null or an empty string, because the file may be
// damaged or of another format.
class Elf {
 public:
  explicit Elf(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  const T* at(uint64_t offset, uint64_t count = 1) const {
    if (count > bytes_.size() / sizeof(T) || offset > bytes_.size() - count * sizeof(T) ||
        offset % alignof(T) != 0)
      return nullptr;
    return reinterpret_cast<const T*>(bytes_.data() + offset);
  }
  std::string_view text(uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const std::string_view rest = bytes_.substr(offset);
    const size_t end = rest.find('\0');
    return end == std::string_view::npos ? std::string_view{} : rest.substr(0, end);
  }

 private:
  std::string_view bytes_;
};

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Returns .../lib/carve for .../bin/carve.
std::string library_folder() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string self(path, length > 0 ? static_cast<size_t>(length) : 0);
  const std::string bin = self.substr(0, self.rfind('/'));
  return bin.substr(0, bin.rfind('/')) + "/lib/carve";
}

// Returns the path of the installed driver, as the loader resolves it.
std::string installed_driver() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return {};
  link_map* map = nullptr;
  const bool found = dlinfo(driver, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
  return found ? map->l_name : "";
}

}  // namespace

// After a mismatch only the last star needs to match one more character; an earlier star would not help. So
// the cost is the product of the two lengths, for any number of stars.
bool matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::vector<CoverageRow> parse_coverage(std::string_view text) {
  std::vector<CoverageRow> rows;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.empty() || line.front() == '#') continue;
    std::string words[3];
    for (int i = 0; i < 3 && !line.empty(); ++i) {
      const size_t stop = i < 2 ? line.find_first_of(" \t") : std::string_view::npos;
      words[i] = line.substr(0, stop);
      line = stop == std::string_view::npos
                 ? std::string_view{}
                 : line.substr(std::min(line.find_first_not_of(" \t", stop), line.size()));
    }
    rows.push_back({words[0], words[1], words[2]});
  }
  return rows;
}

std::vector<std::string> uncovered(const std::vector<std::string>& exports,
                                   const std::vector<CoverageRow>& rows) {
  std::vector<std::string> out;
  for (const std::string& name : exports) {
    if (std::ranges::none_of(looks_dangerous, [&](std::string_view p) { return matches(p, name); })) continue;
    const auto row =
        std::ranges::find_if(rows, [&](const CoverageRow& r) { return matches(r.pattern, name); });
    if (row == rows.end() || row->status == "open") out.push_back(name);
  }
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> exported_names(std::string_view bytes) {
  const Elf elf(bytes);
  const auto* header = elf.at<Elf64_Ehdr>(0);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64)
    return {};
  const auto* sections = elf.at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
  if (sections == nullptr) return {};
  std::vector<std::string> names;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const Elf64_Shdr& section = sections[i];
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= header->e_shnum) continue;
    const uint64_t count = section.sh_size / sizeof(Elf64_Sym);
    const auto* symbols = elf.at<Elf64_Sym>(section.sh_offset, count);
    if (symbols == nullptr) return {};
    for (uint64_t s = 0; s < count; ++s) {
      if (symbols[s].st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbols[s].st_info) != STT_FUNC) continue;
      const std::string_view name = elf.text(sections[section.sh_link].sh_offset + symbols[s].st_name);
      if (!name.empty()) names.emplace_back(name);
    }
  }
  return names;
}

api::Check coverage_check(bool simulated) {
  api::Check check{.name = "coverage", .status = CheckStatus::degraded};
  const std::string folder = library_folder();
  const std::string driver = simulated ? folder + "/sim/libcuda.so.1" : installed_driver();
  if (driver.empty()) {
    check.detail = "libcuda.so.1 is not installed here, so its entry points were not compared";
    return check;
  }
  const auto names = exported_names(file_text(driver));
  const auto rows = parse_coverage(file_text(folder + "/coverage.txt"));
  if (names.empty() || rows.empty()) {
    check.status = CheckStatus::failed;
    check.detail = names.empty() ? driver + " is not a readable driver"
                                 : folder + "/coverage.txt is missing; install Carve again";
    return check;
  }
  const auto open = uncovered(names, rows);
  if (open.empty()) {
    check.status = CheckStatus::ok;
    check.detail = fmt::format("all entry points of {} that allocate or launch are covered", driver);
    return check;
  }
  constexpr size_t most = 12;
  const std::vector<std::string> first(open.begin(),
                                       open.begin() + static_cast<ptrdiff_t>(std::min(most, open.size())));
  check.detail =
      fmt::format("{} of {} entry points of {} allocate or launch but have no hook: {}{}", open.size(),
                  names.size(), driver, fmt::join(first, " "), open.size() > most ? " ..." : "");
  check.fix =
      "install a newer Carve; until then the driver-reported memory of a slice is charged within a second";
  return check;
}

}  // namespace carve::cli
