#include "controller/runtime/owner_files.h"

#include <unistd.h>

#include <filesystem>

#include "controller/runtime/program_directory.h"
#include "os/directory.h"
#include "os/process.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

constexpr std::string_view suffix = ".json";

// Calls `visit` with each name in the folder. A missing folder counts as empty.
template <class Visit>
void each_name(const std::string& folder, const Visit& visit) {
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed))
    visit(entry->path().filename().string());
}

}  // namespace

std::string OwnerFiles::path_of(const std::string& program) const {
  return folder_ + "/" + program + std::string(suffix);
}

Outcome<void> OwnerFiles::write(const std::string& program, const ProgramOwner& owner) const {
  const std::string text = api::write(owner);
  if (os::read_file(path_of(program)) == text) return {};
  if (auto made = os::make_directory(folder_, 0700); !made) return made;
  return os::replace_unsynced_file(path_of(program), text);
}

void OwnerFiles::remove(const std::string& program) const { unlink(path_of(program).c_str()); }

std::set<std::string> OwnerFiles::programs() const {
  std::set<std::string> out;
  const auto add = [&](const std::string& name) {
    if (is_program_name(name)) out.insert(name);
  };
  each_name(programs_, add);
  each_name(folder_, [&](const std::string& file) {
    if (file.ends_with(suffix)) add(file.substr(0, file.size() - suffix.size()));
  });
  return out;
}

ProgramOwner OwnerFiles::read(const std::string& program) const {
  auto owner = api::read<ProgramOwner>(os::read_file(path_of(program)).value_or(""), api::Reading::lenient);
  return owner ? std::move(*owner) : ProgramOwner{};
}

}  // namespace carve::controller
