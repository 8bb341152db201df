#include "controller/cluster/node_read.h"

namespace carve::controller {

NodeRead::NodeRead(const Tools& tools, ClusterNode node, std::function<void(const ReadResult&)> ended)
    : tools_(tools), node_(std::move(node)), ended_(std::move(ended)) {}

NodeRead::~NodeRead() {
  if (ended_) tools_.tokens.remove(node_.name);
}

template <class T>
std::function<void(T)> NodeRead::alive(void (NodeRead::*act)(T)) {
  return [weak = weak_from_this(), act](T result) {
    if (const auto self = weak.lock(); self && self->ended_) (self.get()->*act)(std::move(result));
  };
}

void NodeRead::begin() {
  now_ = tools_.now();
  timer_ = tools_.api.after(patience_ns, [this] { fail("the read took too long"); });
  tools_.tokens.get(node_.name, alive(&NodeRead::got_token));
}

void NodeRead::got_token(Outcome<std::string> token) {
  if (!token) return fail(token.error().message);
  client_ = tools_.connect(node_, *token);
  tools_.books.find_position(node_.name, alive(&NodeRead::got_position));
}

void NodeRead::got_position(Outcome<CopyPosition> position) {
  if (!position) return fail(position.error().message);
  // A pod's queue is not one of this controller's, so no record is prepaid.
  copy_.emplace(
      node_.name, std::move(*position), [](const std::string&) { return false; }, now_);
  request();
}

void NodeRead::request() {
  const auto request = copy_->next();
  if (!request) return end();
  if (++pages_ > max_pages) {
    result_.has_more = true;
    return end();
  }
  asked_ = *request;
  call_ = client_->send({.target = "/v1/usage?" + usage_query(asked_), .deadline_ns = request_ns},
                        alive(&NodeRead::answered));
}

void NodeRead::answered(kubernetes::ApiAnswer answer) {
  if (answer.status == 401) tools_.tokens.forget(node_.name);
  if (!answer.is_success()) return fail(answer.problem);
  result_.bytes += answer.body.size();
  auto page =
      check_page(answer.body, asked_, node_.name, tools_.evidence, tools_.heard_ns(), tools_.now().utc_ns);
  if (!page) return fail(page.error().message);
  result_.refused += page->refused;
  for (std::string& refusal : page->refusals)
    if (result_.refusals.size() < max_refusals) result_.refusals.push_back(std::move(refusal));
  if (result_.refused > max_refused)
    return fail(fmt::format("more than {} records were refused", max_refused));
  result_.undecided = page->undecided;
  auto write = copy_->take(page->records, page->last);
  if (!write) return fail(write.error().message);
  result_.records += write->rows.size();
  result_.loss = copy_->loss();
  result_.ledger = copy_->ledger();
  tools_.books.write(node_.name, std::move(*write), alive(&NodeRead::written));
}

void NodeRead::written(Outcome<void> done) {
  if (!done) return fail(done.error().message);
  if (!result_.undecided.empty()) return end();
  request();
}

void NodeRead::fail(const std::string& problem) {
  result_.problem = problem;
  end();
}

void NodeRead::end() {
  timer_.reset();
  const auto ended = std::exchange(ended_, nullptr);
  ended(result_);
}

}  // namespace carve::controller
