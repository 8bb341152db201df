// Creates a self-signed server certificate for 127.0.0.1.
#pragma once

#include <filesystem>
#include <string>

#include "tls/tls.h"

namespace carve::kubernetes {

class LoopbackIdentity {
 public:
  LoopbackIdentity();
  ~LoopbackIdentity() { std::filesystem::remove_all(folder_); }
  LoopbackIdentity(const LoopbackIdentity&) = delete;
  LoopbackIdentity& operator=(const LoopbackIdentity&) = delete;

  const std::string& ca_pem() const { return ca_pem_; }
  tls::Identity server() const;

 private:
  std::string folder_, ca_pem_;
};

}  // namespace carve::kubernetes
