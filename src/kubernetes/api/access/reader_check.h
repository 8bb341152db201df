// Checks whether a request may read a path: its token must belong to an account (TokenReview) that may `get`
// the path as a nonResourceURL (SubjectAccessReview). If an audience is given, the token must have been issued
// for it. A result is cached for 60 s under the SHA-256 of the audience, the path and the token. Sources: authentication.k8s.io/v1, authorization.k8s.io/v1.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "http/message.h"
#include "kubernetes/api/api_client.h"

namespace carve::kubernetes {

class ReaderCheck {
 public:
  explicit ReaderCheck(ApiClient& client) : client_(client) {}

  // Passes the response to `done`, either immediately or later in this thread.
  using Done = std::function<void(http::Response)>;
  using Source = std::function<void(Done)>;

  // Responds with the source's response if the caller may get the request's path, otherwise with 401, 403 or
  // 503. The source is called only for callers that may. Without an audience, the token must be valid for the
  // API server.
  http::Response answer(const http::Request&, const Source&, const std::string& audience = "");

 private:
  static constexpr Nanoseconds trust_ns = 60 * second_ns;
  static constexpr size_t max_known = 1'000, max_asked = 64;

  struct Known {
    unsigned status;  // 200 if the caller may read.
    Nanoseconds until;
  };
  struct Question {
    std::string path;
    std::string audience;  // Empty for that of the API server.
    std::string key;
    std::function<void(unsigned status)> done;
    std::unique_ptr<ApiCall> call = nullptr;
  };
  void ask(Question, const std::string& token);
  void reviewed(uint64_t number, const ApiAnswer&);
  void allowed(uint64_t number, const ApiAnswer&);
  void finish(uint64_t number, unsigned status);

  ApiClient& client_;
  std::map<std::string, Known> known_;
  std::map<uint64_t, Question> questions_;
  uint64_t next_ = 0;
};

}  // namespace carve::kubernetes
