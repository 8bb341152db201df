// The contexts of a user: names for controllers on other machines, each with its address, token and CA. They are in one
// file, $XDG_CONFIG_HOME/carve/contexts.json or ~/.config/carve/contexts.json, which contains secrets and which only its
// owner may read.
#pragma once

#include <string>
#include <vector>

#include "core/failure.h"

namespace carve::cli {

struct ServerContext {
  std::string name;
  std::string server;  // "https://gpu.example:8470"
  std::string token;
  std::string ca;  // The CA's certificates in PEM. Empty for the CAs of the system.
};

struct ServerContexts {
  std::string current;  // Name of the context in use. Empty for the controller of this machine.
  std::vector<ServerContext> contexts;
};

// Returns the path of the file.
std::string contexts_path();

// Reads the contexts. There are none if the file is missing or in a folder that this user may not search. Fails if
// other users may read the file, or if it is damaged.
Outcome<ServerContexts> read_contexts(const std::string& path);
// Replaces the file in one step, with mode 0600, and creates its folder.
Outcome<void> write_contexts(const std::string& path, const ServerContexts&);

// Returns the context with this name, or a message with the known names.
Outcome<ServerContext> find_context(const ServerContexts&, const std::string& name);

}  // namespace carve::cli
