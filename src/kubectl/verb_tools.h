// What the verbs that ask the cluster have in common: questions to kubectl, sentences, output.
#pragma once

#include <cstdio>
#include <string>

#include "kubectl/verbs.h"
#include "wire/api/json.h"

namespace carve::kubectl {

inline constexpr const char* system_path = "/api/v1/namespaces/carve-system";

// Prints the sentence and returns the exit status.
int complain(const std::string& sentence);

// Returns the object or the list at the path.
Result<std::string, std::string> get(const VerbOptions&, const std::string& path);

constexpr bool is_document(Form form) { return form == Form::json || form == Form::yaml; }

// Prints the text, or with --watch what is new in it; returns the exit status.
int print_text(const VerbOptions&, const std::string& text);

// Prints the list as a document, or the text of its tables; returns the exit status.
template <class List>
int print(const VerbOptions& options, const List& list, const std::string& tables) {
  return print_text(options,
                    is_document(options.form) ? document_text(api::write(list), options.form) : tables);
}
template <class List>
int print(const VerbOptions& options, const List& list, const Table& table) {
  return print(options, list, is_document(options.form) ? std::string() : table_text(table));
}

}  // namespace carve::kubectl
