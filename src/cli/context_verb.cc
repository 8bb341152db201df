// `carve context add|use|list|delete`: names for controllers on other machines, and the choice of the controller that
// the other verbs use.
#include <algorithm>
#include <cstdlib>

#include "cli/server_contexts.h"
#include "cli/verbs.h"
#include "client/remote/https_server.h"
#include "os/process.h"

namespace carve::cli {
namespace {

constexpr size_t max_secret_file_bytes = 1 << 20;
constexpr const char* local_name = "local";  // `carve context use local`: the controller of this machine.

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Reads a file without the white space at its end.
Outcome<std::string> read_secret(const char* option, const std::string& path) {
  auto text = os::read_file(path, max_secret_file_bytes);
  if (!text) return failure(FailureKind::invalid_argument, "{} {}: cannot read the file", option, path);
  while (!text->empty() && isspace(static_cast<unsigned char>(text->back()))) text->pop_back();
  if (text->empty()) return failure(FailureKind::invalid_argument, "{} {}: the file is empty", option, path);
  return *text;
}

// A token is part of a header line.
Outcome<void> check_token(const std::string& token) {
  if (std::ranges::all_of(token, [](unsigned char c) { return c > ' ' && c < 127; })) return {};
  return failure(FailureKind::invalid_argument, "the token contains a blank or a control character");
}

client::Settings controller_settings() {
  return {.socket_option = "--controller PATH or CARVE_CONTROLLER",
          .server = client::Server::controller,
          .warn = [](const std::string& warning) { print_warning(warning); }};
}

Outcome<client::Client> https_client(const ServerContext& context) {
  const auto address = client::parse_https_address(context.server);
  if (!address) return tl::unexpected(address.error());
  if (const auto good = check_token(context.token); !good) return tl::unexpected(good.error());
  const client::Settings settings = controller_settings();
  auto remote =
      client::https_remote({.address = *address, .token = context.token, .ca_pem = context.ca}, settings);
  if (!remote) return tl::unexpected(remote.error());
  return client::Client(std::move(*remote), settings);
}

// Returns a client for an address in an option or a variable, with the token and the CA of the variables.
Outcome<client::Client> client_of_variables(const std::string& server) {
  ServerContext out{.name = "", .server = server, .token = variable("CARVE_TOKEN"), .ca = ""};
  if (const std::string path = variable("CARVE_CA"); !path.empty()) {
    auto ca = read_secret("CARVE_CA", path);
    if (!ca) return tl::unexpected(ca.error());
    out.ca = std::move(*ca);
  }
  return https_client(out);
}

Outcome<client::Client> client_of_context(const std::string& name) {
  const auto all = read_contexts(contexts_path());
  if (!all) return tl::unexpected(all.error());
  const std::string& used = name.empty() ? all->current : name;
  if (used.empty() || used == local_name)
    return client::Client(client::find_controller_socket(""), controller_settings());
  const auto found = find_context(*all, used);
  if (!found) return tl::unexpected(found.error());
  return https_client(*found);
}

void fail(Context& context, const Failure& failure) {
  complain({.title = "failed", .detail = failure.message});
  context.status = failed_status;
}

Outcome<ServerContexts> added(ServerContext one, const std::string& token_file, const std::string& ca_file) {
  if (one.name.empty() || one.name == local_name)
    return failure(FailureKind::invalid_argument, "a context cannot have the name '{}'", one.name);
  auto token = read_secret("--token-file", token_file);
  if (!token) return tl::unexpected(token.error());
  one.token = std::move(*token);
  if (!ca_file.empty()) {
    auto ca = read_secret("--ca", ca_file);
    if (!ca) return tl::unexpected(ca.error());
    one.ca = std::move(*ca);
  }
  if (const auto usable = https_client(one); !usable) return tl::unexpected(usable.error());
  auto all = read_contexts(contexts_path());
  if (!all) return tl::unexpected(all.error());
  std::erase_if(all->contexts, [&](const ServerContext& other) { return other.name == one.name; });
  all->contexts.push_back(std::move(one));
  return std::move(*all);
}

void add_context_add(CLI::App* parent, Context& context) {
  CLI::App* verb =
      parent->add_subcommand("add", "Add a controller on another machine, or replace the one with this name");
  auto one = std::make_shared<ServerContext>();
  auto token_file = std::make_shared<std::string>(), ca_file = std::make_shared<std::string>();
  verb->add_option("NAME", one->name, "The name of the context")->required();
  verb->add_option("--server", one->server, "The controller's address, https://HOST:PORT")
      ->required()
      ->type_name("URL");
  verb->add_option("--token-file", *token_file, "File with a token of carve token create; it is copied")
      ->required()
      ->type_name("FILE");
  verb->add_option("--ca", *ca_file,
                   "File with the certificate of the CA, in PEM; it is copied [the system's CAs]")
      ->type_name("FILE");
  verb->footer("  carve context add lab --server https://gpu.example:8470 --token-file token --ca ca.pem");
  verb->callback([&context, one, token_file, ca_file] {
    const auto all = added(*one, *token_file, *ca_file);
    if (!all) return fail(context, all.error());
    if (const auto kept = write_contexts(contexts_path(), *all); !kept) return fail(context, kept.error());
    fmt::print("context {} added; use it with carve context use {}\n", harmless(one->name),
               harmless(one->name));
  });
}

void add_context_use(CLI::App* parent, Context& context) {
  CLI::App* verb =
      parent->add_subcommand("use", "Use a context from now on; 'local' is the controller of this machine");
  auto name = std::make_shared<std::string>();
  verb->add_option("NAME", *name, "The context")->required();
  verb->callback([&context, name] {
    auto all = read_contexts(contexts_path());
    if (!all) return fail(context, all.error());
    if (*name != local_name)
      if (const auto found = find_context(*all, *name); !found) return fail(context, found.error());
    all->current = *name == local_name ? "" : *name;
    if (const auto kept = write_contexts(contexts_path(), *all); !kept) return fail(context, kept.error());
    fmt::print("{}\n", harmless(*name));
  });
}

void add_context_list(CLI::App* parent, Context& context) {
  CLI::App* verb = parent->add_subcommand("list", "List the contexts; * marks the one in use");
  verb->callback([&context] {
    const auto all = read_contexts(contexts_path());
    if (!all) return fail(context, all.error());
    std::vector<std::vector<std::string>> rows = {{all->current.empty() ? "*" : "", local_name, "-", "-"}};
    for (const ServerContext& one : all->contexts)
      rows.push_back({one.name == all->current ? "*" : "", harmless(one.name), harmless(one.server),
                      one.ca.empty() ? "system" : "own"});
    fmt::print("{}", table({"", "NAME", "SERVER", "CA"}, rows));
  });
}

void add_context_delete(CLI::App* parent, Context& context) {
  CLI::App* verb = parent->add_subcommand("delete", "Delete a context with its token");
  auto name = std::make_shared<std::string>();
  verb->add_option("NAME", *name, "The context")->required();
  verb->callback([&context, name] {
    auto all = read_contexts(contexts_path());
    if (!all) return fail(context, all.error());
    if (const auto found = find_context(*all, *name); !found) return fail(context, found.error());
    std::erase_if(all->contexts, [&](const ServerContext& one) { return one.name == *name; });
    if (all->current == *name) all->current.clear();
    if (const auto kept = write_contexts(contexts_path(), *all); !kept) return fail(context, kept.error());
    fmt::print("{}\n", harmless(*name));
  });
}

}  // namespace

// --controller and --context win over the variables, and these over the context in use.
client::Client Context::controller() const {
  const std::string named = !controller_flag.empty() ? controller_flag
                            : context_flag.empty()   ? variable("CARVE_CONTROLLER")
                                                     : "";
  const auto chosen = named.starts_with("https://") ? client_of_variables(named)
                      : !named.empty() ? Outcome<client::Client>(client::Client(named, controller_settings()))
                                       : client_of_context(context_flag);
  if (chosen) return *chosen;
  complain({.title = "failed", .detail = chosen.error().message});
  std::exit(chosen.error().kind == FailureKind::invalid_argument ? usage_status : failed_status);
}

void add_context(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("context", "Use a controller on another machine");
  verb->require_subcommand(1);
  add_context_add(verb, context);
  add_context_use(verb, context);
  add_context_list(verb, context);
  add_context_delete(verb, context);
}

}  // namespace carve::cli
