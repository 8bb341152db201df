// Checks whether a request may read /metrics: its token must belong to an account (TokenReview) that may
// `get` the nonResourceURL /metrics (SubjectAccessReview). A result is cached for 60 s under the token's
// SHA-256. Sources: authentication.k8s.io/v1, authorization.k8s.io/v1.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "http/message.h"
#include "kubernetes/api/api_client.h"
#include "wire/api/exposition.h"

namespace carve::kubernetes {

class ReaderCheck {
 public:
  explicit ReaderCheck(ApiClient& client) : client_(client) {}

  // Passes the text in this format to `done`, either immediately or later in this thread.
  using Done = std::function<void(std::string text)>;
  using Source = std::function<void(api::MetricsFormat, Done)>;

  // Responds with the source's text if the caller may read it, otherwise with 401, 403 or 503. The source is
  // called only for callers that may read.
  http::Response answer(const http::Request&, const Source&);

 private:
  static constexpr Nanoseconds trust_ns = 60 * second_ns;
  static constexpr size_t max_known = 1'000, max_asked = 64;

  struct Known {
    unsigned status;  // 200 if the caller may read.
    Nanoseconds until;
  };
  struct Question {
    std::string key;
    std::function<void(unsigned status)> done;
    std::unique_ptr<ApiCall> call;
  };
  void ask(const std::string& token, const std::string& key, std::function<void(unsigned)> done);
  void reviewed(uint64_t number, const ApiAnswer&);
  void allowed(uint64_t number, const ApiAnswer&);
  void finish(uint64_t number, unsigned status);

  ApiClient& client_;
  std::map<std::string, Known> known_;
  std::map<uint64_t, Question> questions_;
  uint64_t next_ = 0;
};

}  // namespace carve::kubernetes
