#include "kubernetes/cli/verb_tools.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "kubernetes/cli/json_path.h"

namespace carve::kubernetes::cli {
namespace {

constexpr std::chrono::seconds watch_interval{2};

}  // namespace

int complain(const std::string& message) {
  fmt::print(stderr, "kubectl-carve: {}\n", message);
  return failed_status;
}

int print_text(const VerbOptions& options, const std::string& text) {
  const std::string out =
      options.changes != nullptr ? options.changes->since_before(text, options.form) : text;
  return fputs(out.c_str(), stdout) < 0 || fflush(stdout) != 0 ? failed_status : 0;
}

std::string namespace_of(const VerbOptions& options) {
  if (!options.name_space.empty()) return options.name_space;
  const auto of_context =
      run_kubectl(options.kubectl, {"config", "view", "--minify", "--output=jsonpath={..namespace}"});
  return of_context && !of_context->empty() ? *of_context : "default";
}

Result<std::string, std::string> pod_name(const std::string& given) {
  const size_t slash = given.find('/');
  if (slash == given.npos) return given;
  const std::string kind = given.substr(0, slash);
  constexpr std::string_view kinds[] = {"pod", "pods", "po"};
  if (std::ranges::find(kinds, kind) != std::end(kinds)) return given.substr(slash + 1);
  return tl::unexpected(fmt::format("'{}' is not a pod; use pod/NAME", given));
}

int print_document(const VerbOptions& options, const std::string& json) {
  if (options.form != Form::json_path) return print_text(options, document_text(json, options.form));
  const auto text = json_path_text(json, options.path_template);
  return text ? print_text(options, *text) : complain("-o jsonpath: " + text.error());
}

int print_names(const VerbOptions& options, const Table& table) {
  if (table.names.size() != table.rows.size() - std::min(table.rows.size(), table.unnamed_rows) ||
      table.headings.empty())
    return complain("-o name: these rows have no names; use -o json");
  return print_text(options, names_text(table));
}

int print_table(const VerbOptions& options, const Table& table) {
  if (!table.rows.empty() || options.changes != nullptr)
    return print_text(options, table_text(table, options.headings));
  fmt::print(stderr, "No resources found{}\n",
             options.name_space.empty() ? "" : fmt::format(" in {} namespace", options.name_space));
  return 0;
}

int watch(int (*show)(const VerbOptions&), VerbOptions options) {
  Changes changes;
  options.changes = &changes;
  while (true) {
    const int status = show(options);
    if (!changes.take_has_result()) return status;
    std::this_thread::sleep_for(watch_interval);
  }
}

Result<std::string, std::string> get(const VerbOptions& options, const std::string& path) {
  return run_kubectl(options.kubectl, {"get", "--raw", path});
}

}  // namespace carve::kubernetes::cli
