// Helpers for the verbs that call the cluster: requests through kubectl, errors and output.
#pragma once

#include <cstdio>
#include <string>

#include "kubernetes/cli/verbs.h"
#include "wire/api/json.h"

namespace carve::kubernetes::cli {

inline constexpr const char* system_path = "/api/v1/namespaces/carve-system";

// Prints the message. Returns the exit status.
int complain(const std::string& message);

// Returns the object or list at the path.
Result<std::string, std::string> get(const VerbOptions&, const std::string& path);

// Returns the namespace from the options, otherwise that of kubectl's context.
std::string namespace_of(const VerbOptions&);
// Returns the name in "web", "pod/web" or "pods/web". Fails if the kind is not pod.
Result<std::string, std::string> pod_name(const std::string& given);

constexpr bool is_document(Form form) {
  return form == Form::json || form == Form::yaml || form == Form::json_path;
}

// Prints JSON in the selected format. Returns the exit status.
int print_document(const VerbOptions&, const std::string& json);
// Prints the names of the table's rows. Returns the exit status.
int print_names(const VerbOptions&, const Table&);
// Prints the table, or "No resources found" as kubectl does. Returns the exit status.
int print_table(const VerbOptions&, const Table&);

// Prints the text, or with --watch only the new part of it. Returns the exit status.
int print_text(const VerbOptions&, const std::string& text);

// Prints the list as a document or as tables. Returns the exit status.
template <class List>
int print(const VerbOptions& options, const List& list, const std::string& tables) {
  if (is_document(options.form)) return print_document(options, api::write(list));
  return options.form == Form::name ? print_names(options, {}) : print_text(options, tables);
}
template <class List>
int print(const VerbOptions& options, const List& list, const Table& table) {
  if (is_document(options.form)) return print_document(options, api::write(list));
  return options.form == Form::name ? print_names(options, table) : print_table(options, table);
}

}  // namespace carve::kubernetes::cli
