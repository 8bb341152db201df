// `carve diff -f FILE`: prints what `carve apply` would change, with the exit statuses of diff and kubectl.
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/documents.h"
#include "cli/edit_form.h"
#include "cli/object_output.h"
#include "cli/services.h"
#include "cli/user_command.h"
#include "cli/verbs.h"
#include "wire/api/json_value.h"

namespace carve::cli {
namespace {

namespace fs = std::filesystem;

constexpr int different_status = 1, trouble_status = 2;
constexpr const char* diff_variable = "CARVE_EXTERNAL_DIFF";

// Two folders with the documents of the objects that would change, readable only by the user. They are removed
// at the end.
class ComparedFolders {
 public:
  ComparedFolders() {
    const std::string top = command_from({"TMPDIR"}, "/tmp");
    std::string name = top + "/carve-diff-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) return;
    path_ = name;
    std::error_code error;
    fs::create_directory(path_ / stored, error);
    fs::create_directory(path_ / applied, error);
  }
  ~ComparedFolders() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  ComparedFolders(const ComparedFolders&) = delete;
  ComparedFolders& operator=(const ComparedFolders&) = delete;

  static constexpr const char* stored = "stored";
  static constexpr const char* applied = "applied";

  const fs::path& path() const { return path_; }  // Empty if the folder could not be created.
  // Returns whether the file could be written.
  bool write(const char* folder, const std::string& name, const std::string& text) const {
    std::ofstream file(path_ / folder / name, std::ios::binary);
    file << text;
    return file.flush().good();
  }

 private:
  fs::path path_;
};

// Returns the object as YAML, or an empty text if there is none.
std::string text_of(const std::optional<std::string>& object) {
  const auto json = object ? api::parse(*object) : api::parse("");
  return json ? yaml_of(user_form(*json).dump()) : "";
}

// The names are those of objects, which contain no '/'.
std::string file_name(const ObjectName& object) {
  std::string out =
      fmt::format("{}.{}.{}.yaml", objects::text_of(object.kind).singular, object.name_space, object.name);
  std::ranges::replace(out, '/', '_');
  return out;
}

// Writes the documents of the objects that would change. Returns how many there are.
size_t write_changes(Context& context, const DocumentOptions& options, const ComparedFolders& folders) {
  const std::string target = fmt::format("/v1/documents?{}&diff=true", query_of(options));
  size_t changes = 0;
  for_each_file(context, options, [&](const DocumentFile& file) {
    answered_for(
        context, file, context.controller().send<api::AppliedList>("POST", target, file.text),
        [&](const api::AppliedList& list) {
          for (const api::AppliedObject& object : list.items) {
            print_warnings(object.warnings);
            const std::string before = text_of(object.before), after = text_of(object.after);
            if (before == after) continue;
            const std::string name = file_name(name_of(object));
            const bool is_written =
                (before.empty() || folders.write(ComparedFolders::stored, name, before)) &&
                folders.write(ComparedFolders::applied, name, after);
            if (!is_written) {
              complain({.title = "diff", .detail = (folders.path() / name).string() + ": cannot be written"});
              context.status = trouble_status;
            }
            ++changes;
          }
        });
  });
  return changes;
}

void diff(Context& context, const DocumentOptions& options) {
  context.problem_status = trouble_status;
  const auto fail = [&](const std::string& message) {
    complain({.title = "diff", .detail = message});
    context.status = trouble_status;
  };
  const ComparedFolders folders;
  if (folders.path().empty()) return fail("cannot create a folder in TMPDIR or /tmp");
  if (write_changes(context, options, folders) == 0) return;
  const std::string command = command_from({diff_variable}, "diff -u -N");
  const auto status =
      run_user_command(command, {ComparedFolders::stored, ComparedFolders::applied}, folders.path());
  if (!status) return fail(status.error());
  if (*status > different_status)
    return fail(
        fmt::format("'{}' failed with status {}; {} names another program", command, *status, diff_variable));
  if (context.status == 0) context.status = different_status;
}

}  // namespace

void add_diff(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("diff", "Print what carve apply would change in the stored objects");
  auto options = std::make_shared<DocumentOptions>();
  add_documents(verb, *options);
  verb->footer(
      "The controller checks the documents and adds the defaults as for carve apply, but stores nothing.\n"
      "The status and the fields that the controller sets are not compared. CARVE_EXTERNAL_DIFF is the\n"
      "command that prints the differences between two folders [diff -u -N].\n"
      "Exit status 0 if nothing would change, 1 if something would, and 2 if there is an error.\n"
      "  carve diff -f examples/service.yaml");
  verb->callback([&context, options] { diff(context, *options); });
}

}  // namespace carve::cli
