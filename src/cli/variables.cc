#include "cli/variables.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/escaped.h"
#include "os/process.h"

namespace carve::cli {
namespace {

constexpr size_t max_file_bytes = 1 << 20;

// Adds "NAME=VALUE" or "NAME". `place` is the option or the line, for messages.
std::string add_variable(const std::string& place, const std::string& word, Variables& variables) {
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const auto refuse = [&](const char* why) {
    return fmt::format("{} '{}': {}", place, escaped(name.substr(0, 80)), why);
  };
  if (name.empty())
    return fmt::format("{} '{}': must be NAME=VALUE or NAME", place, escaped(word.substr(0, 80)));
  if (name.find_first_of(" \t") != std::string::npos) return refuse("a name has no spaces");
  if (word.find('\0') != std::string::npos) return refuse("a variable has no NUL byte");
  if (name == "CUDA_VISIBLE_DEVICES")
    return refuse("carve sets this variable to the slice's devices; choose devices with --device");
  if (name.starts_with("CARVE_")) return refuse("carve sets the variables that begin with CARVE_");
  if (equals != std::string::npos)
    variables[name] = word.substr(equals + 1);
  else if (const char* const value = std::getenv(name.c_str()); value != nullptr)
    variables[name] = value;
  else
    variables.erase(name);
  return "";
}

}  // namespace

void add_variable_options(CLI::App* verb, VariableOptions& options) {
  verb->add_option("-e,--env", options.words,
                   "Set an environment variable of the program, or take NAME from yours; repeatable")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  verb->add_option("--env-file", options.files, "Read variables from a file, one per line; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

std::string add_file_variables(const std::string& file, const std::string& text, Variables& variables) {
  size_t number = 0;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    line.erase(0, std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty() || line.front() == '#') continue;
    if (std::string problem = add_variable(fmt::format("{}, line {}:", file, number + 1), line, variables);
        !problem.empty())
      return problem;
  }
  return "";
}

Result<Variables, std::string> to_variables(const VariableOptions& options) {
  Variables out;
  for (const std::string& file : options.files) {
    const auto text = os::read_file(file, max_file_bytes + 1);
    if (!text) return tl::unexpected(fmt::format("--env-file {}: {}", file, strerror(errno)));
    if (text->size() > max_file_bytes)
      return tl::unexpected(fmt::format("--env-file {}: the file has more than 1 MiB", file));
    if (std::string problem = add_file_variables(file, *text, out); !problem.empty())
      return tl::unexpected("--env-file " + std::move(problem));
  }
  for (const std::string& word : options.words)
    if (std::string problem = add_variable("--env", word, out); !problem.empty())
      return tl::unexpected(std::move(problem));
  return out;
}

Outcome<void> set_variables(const Variables& variables) {
  for (const auto& [name, value] : variables)
    if (setenv(name.c_str(), value.c_str(), 1) != 0)
      return failure(FailureKind::unavailable, "cannot set the variable {}: {}", name, strerror(errno));
  return {};
}

}  // namespace carve::cli
