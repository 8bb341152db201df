// The API's routes (wire/api/FORMAT.md): the right to call them, the documents in and out, and failures as
// problem documents.
#pragma once

#include "node/agent/agent.h"
#include "node/serve/http.h"

namespace carve::node {

// Answers a caller that the kernel does not identify: the metrics of all slices, and no other path.
HttpResponse answer_metrics(const Agent&, const HttpRequest&);

class Routes {
 public:
  explicit Routes(Agent& agent);
  HttpResponse answer(const HttpRequest&, Peer&);

 private:
  Agent& agent_;
  int64_t started_ns_;
};

}  // namespace carve::node
