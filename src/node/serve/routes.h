// The API's routes (wire/api/FORMAT.md): who may ask for what, the documents in and out, and failures as
// problem documents.
#pragma once

#include "node/agent/agent.h"
#include "node/serve/http.h"

namespace carve::node {

// What is answered where nobody says who calls: the metrics of all slices, and nothing else.
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
