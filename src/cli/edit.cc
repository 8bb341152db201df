// `carve edit KIND/NAME`: opens an object in the user's editor and stores the changes.
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

#include "cli/edit_form.h"
#include "cli/object_output.h"
#include "cli/services.h"
#include "cli/user_command.h"
#include "cli/verbs.h"
#include "os/fd.h"
#include "os/input_file.h"
#include "wire/api/json_value.h"

namespace carve::cli {
namespace {

// The text in the editor. The file is removed at the end unless it is kept.
class EditedFile {
 public:
  EditedFile(std::string_view kind, const std::string& name) {
    constexpr std::string_view end = ".yaml";
    std::string path =
        fmt::format("{}/carve-edit-{}-{}-XXXXXX{}", command_from({"TMPDIR"}, "/tmp"), kind, name, end);
    if (os::Fd(mkstemps(path.data(), end.size()))) path_ = path;
  }
  ~EditedFile() {
    if (!is_kept_ && !path_.empty()) unlink(path_.c_str());
  }
  EditedFile(const EditedFile&) = delete;
  EditedFile& operator=(const EditedFile&) = delete;

  const std::string& path() const { return path_; }  // Empty if the file could not be created.
  const std::string& keep() {
    is_kept_ = true;
    return path_;
  }
  bool write(const std::string& text) const {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file << text;
    return file.flush().good();
  }

 private:
  std::string path_;
  bool is_kept_ = false;
};

// The stored object that is being edited.
struct Edited {
  ObjectName name;
  std::string version;  // metadata.resourceVersion
  api::Json form;       // As user_form() returns it.
};

void fail(Context& context, const std::string& message) {
  fmt::print(stderr, "carve: {}\n", message);
  context.status = failed_status;
}

std::optional<Edited> stored_object(Context& context, const ObjectName& object) {
  std::optional<Edited> out;
  answered(context, context.controller().text(object_path(object)), [&](const std::string& text) {
    const auto json = api::parse(text);
    if (!json) return fail(context, "cannot read the controller's response: " + json.error());
    const std::string version = json->value("/metadata/resourceVersion"_json_pointer, std::string());
    out = Edited{.name = object, .version = version, .form = user_form(*json)};
  });
  return out;
}

// Opens the file in the editor and returns its text. Prints why if that fails.
std::optional<std::string> text_from_editor(Context& context, EditedFile& file) {
  const std::string editor = command_from({"CARVE_EDITOR", "EDITOR"}, "vi");
  const auto status = run_user_command(editor, {file.path()}, ".");
  if (!status || *status != 0) {
    fail(
        context,
        fmt::format("the editor '{}' failed{}; the text is in {}, and CARVE_EDITOR names another one", editor,
                    status ? fmt::format(" with status {}", *status) : ": " + status.error(), file.keep()));
    return std::nullopt;
  }
  auto text = os::read_input(file.path(), api::max_document_bytes);
  if (text) return std::move(*text);
  fail(context, text.error());
  (void)file.keep();
  return std::nullopt;
}

// Returns whether another change of the text may succeed.
bool is_about_text(const api::Problem& problem) {
  return problem.status == 400 || problem.status == 409 || problem.status == 413 || problem.status == 422;
}

// The warnings in an object's status, which only some kinds have.
struct WithWarnings {
  struct Status {
    std::vector<std::string> warnings;
  } status;
};

void print_stored(const Edited& edited, const std::string& response) {
  const auto object = api::read<WithWarnings>(response, api::Reading::lenient);
  if (object)
    for (const std::string& warning : object->status.warnings) print_warning(warning);
  fmt::print("{} edited\n", edited.name.text());
}

// Stores the change. Returns the problem if the text has to be changed again, an empty text otherwise.
std::string store(Context& context, const Edited& edited, const api::Json& patch, EditedFile& file) {
  const auto stored =
      context.controller().patch_version(object_path(edited.name), patch.dump(), edited.version);
  if (stored) return print_stored(edited, *stored), "";
  const api::Problem& problem = stored.error();
  const std::string detail = problem.detail.empty() ? problem.title : problem.detail;
  if (is_about_text(problem)) return detail;
  if (problem.type == shown(FailureKind::stale).type)
    fail(context,
         fmt::format("{} was changed by another program in the meantime; your text is in {}; run carve "
                     "edit again",
                     edited.name.text(), file.keep()));
  else
    fail(context, fmt::format("{}; your text is in {}", detail, file.keep()));
  return "";
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

void edit(Context& context, const ObjectName& object) {
  const auto edited = stored_object(context, object);
  if (!edited) return;
  EditedFile file(objects::text_of(object.kind).singular, object.name);
  if (file.path().empty()) return fail(context, "cannot create a file in TMPDIR or /tmp");
  std::string document = yaml_of(edited->form.dump()), problem;
  for (;;) {
    if (!file.write(editor_text(object.text(), problem, document)))
      return fail(context, file.path() + ": cannot be written");
    const auto text = text_from_editor(context, file);
    if (!text) return;
    const std::string_view written = without_comment(*text);
    const auto wanted = edited_document(written);
    const api::Json patch = wanted ? merge_patch(edited->form, *wanted) : api::Json();
    if (is_blank(written) || (problem.empty() && wanted && patch.empty()))
      return fmt::print(stderr, "edit cancelled, no changes made\n");
    if (!problem.empty() && written == document)
      return fail(context, "edit cancelled, because the text is still rejected; it is in " + file.keep());
    document = std::string(written);
    if (wanted && patch.empty()) return fmt::print(stderr, "edit cancelled, no changes made\n");
    problem = wanted ? store(context, *edited, patch, file) : wanted.error();
    if (problem.empty()) return;
  }
}

}  // namespace

void add_edit(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("edit", "Change an object in an editor");
  auto words = std::make_shared<std::vector<std::string>>();
  auto name_space = std::make_shared<std::string>("default");
  verb->add_option("KIND/NAME", *words, "The object: service/NAME, or service NAME")->required();
  verb->add_option("-n,--namespace", *name_space, "Namespace of the object")->capture_default_str();
  verb->footer(
      "The editor is CARVE_EDITOR, EDITOR or vi. If the change is rejected, the editor opens again with the\n"
      "reason at the top. If another program has changed the object in the meantime, nothing is stored.\n"
      "  carve edit service/demo\n"
      "  EDITOR='code --wait' carve edit queue/team-a");
  verb->callback([&context, words, name_space] {
    if (slice_named(*words))
      return (void)context.refuse("slices are not objects of the controller; change one with carve set NAME");
    if (const auto object = required_object(context, *words, *name_space)) edit(context, *object);
  });
}

}  // namespace carve::cli
