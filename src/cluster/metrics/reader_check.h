// Whether a request may read /metrics: its token is that of an account (TokenReview) which may `get` the
// nonResourceURL /metrics (SubjectAccessReview). An answer is kept for 60 s, under the token's SHA-256.
// Sources: authentication.k8s.io/v1, authorization.k8s.io/v1.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "http/message.h"
#include "kube/api_client.h"

namespace carve::cluster {

class ReaderCheck {
 public:
  explicit ReaderCheck(kube::ApiClient& client) : client_(client) {}

  // Returns the response of `text` to a caller that may read it, else 401, 403 or 503.
  http::Response answer(const http::Request&, std::function<std::string()> text);

 private:
  static constexpr kube::Nanoseconds trust_ns = 60 * kube::second_ns;
  static constexpr size_t max_known = 1'000, max_asked = 64;

  struct Known {
    unsigned status;  // 200: the reader may.
    kube::Nanoseconds until;
  };
  struct Question {
    std::string key;
    std::function<void(unsigned status)> done;
    std::unique_ptr<kube::ApiCall> call;
  };
  void ask(const std::string& token, const std::string& key, std::function<void(unsigned)> done);
  void reviewed(uint64_t number, const kube::ApiAnswer&);
  void allowed(uint64_t number, const kube::ApiAnswer&);
  void finish(uint64_t number, unsigned status);

  kube::ApiClient& client_;
  std::map<std::string, Known> known_;
  std::map<uint64_t, Question> questions_;
  uint64_t next_ = 0;
};

}  // namespace carve::cluster
