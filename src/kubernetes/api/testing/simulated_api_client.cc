#include "kubernetes/api/testing/simulated_api_client.h"

#include "kubernetes/api/answers.h"

namespace carve::kubernetes {

void VirtualTime::run_until(Nanoseconds end) {
  while (!due_.empty() && due_.begin()->first <= end) {
    now_ = due_.begin()->first;
    auto first = due_.extract(due_.begin());
    first.mapped()();
  }
  now_ = end;
}

// A call in progress. The client owns it until it ends or is cancelled; it does not call back afterwards.
class SimulatedApiClient::Exchange final : public ApiServerFake::Exchange,
                                           public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(SimulatedApiClient& client, ApiRequest request, Lines lines, bool is_watch)
      : client_(&client), request_(std::move(request)), lines_(std::move(lines)), is_watch_(is_watch) {}

  void start() {
    const bool is_connected = client_->is_connected_;
    if (request_.deadline_ns > 0)
      client_->time_.at(client_->now() + request_.deadline_ns,
                        [self = shared_from_this()] { self->fail("no response in time", self->is_sent_); });
    client_->time_.at(client_->now() + client_->delay(), [self = shared_from_this(), is_connected] {
      if (!is_connected) return self->fail("cannot connect", false);
      self->is_sent_ = true;
      self->server_->handle({.method = self->request_.method,
                             .target = self->request_.target,
                             .body = self->request_.body,
                             .content_type = self->request_.content_type,
                             .accept = self->request_.accept,
                             .token = self->token_},
                            self);
    });
  }
  void set_server(ApiServerFake& server, std::string bearer) {
    server_ = &server;
    token_ = std::move(bearer);
  }
  void give_up() {
    if (client_ == nullptr) return;
    SimulatedApiClient& client = *client_;
    client_ = nullptr;
    lines_ = {};
    client.exchanges_.erase(shared_from_this());
  }
  void fail(const std::string& problem, bool may_have_happened) {
    finish({.status = 0, .body = "", .problem = problem, .may_have_happened = may_have_happened});
  }

  void answer(unsigned status, const std::string& body, unsigned retry_after_seconds) override {
    ApiAnswer out{.status = status, .body = body, .retry_after_seconds = retry_after_seconds, .problem = ""};
    if (!out.is_success()) {
      out.problem = "status " + std::to_string(status) + ": " + read_status(body).message;
      out.may_have_happened = !refuses_write(status);
    }
    deliver([out](Exchange& self) { self.finish(out); });
  }
  void begin() override {}
  void send(const std::string& bytes) override {
    deliver([bytes](Exchange& self) { self.take(bytes); });
  }
  void end() override {
    deliver([](Exchange& self) { self.finish({.status = 200, .body = "", .problem = ""}); });
  }
  void lose() override {
    deliver([](Exchange& self) { self.fail("the connection was lost", true); });
  }

 private:
  // Delivers the messages of one call in order.
  void deliver(std::function<void(Exchange&)> act) {
    if (client_ == nullptr) return;
    last_arrival_ = std::max(last_arrival_, client_->now() + client_->delay());
    client_->time_.at(last_arrival_, [self = shared_from_this(), act = std::move(act)] {
      if (self->client_ != nullptr) act(*self);
    });
  }
  void take(const std::string& bytes) {
    received_ += bytes;
    for (size_t end; client_ != nullptr && (end = received_.find('\n')) != std::string::npos;) {
      const std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      const auto call = lines_.line;
      call(line);
    }
  }
  void finish(ApiAnswer answer) {
    if (client_ == nullptr) return;
    const Answered ended = std::move(lines_.ended);
    if (is_watch_ && answer.status == 200 && !received_.empty()) answer.status = 0;
    give_up();
    ended(std::move(answer));
  }

  SimulatedApiClient* client_;  // Null when the call is over.
  ApiServerFake* server_ = nullptr;
  ApiRequest request_;
  Lines lines_;
  bool is_watch_, is_sent_ = false;
  std::string token_, received_;
  Nanoseconds last_arrival_ = 0;
};

namespace {

class ExchangeCall final : public ApiCall {
 public:
  explicit ExchangeCall(std::function<void()> give_up) : give_up_(std::move(give_up)) {}
  ~ExchangeCall() override { give_up_(); }

 private:
  std::function<void()> give_up_;
};

}  // namespace

SimulatedApiClient::~SimulatedApiClient() { forget_calls(); }

Nanoseconds SimulatedApiClient::delay() {
  return std::uniform_int_distribution<Nanoseconds>(0, max_delay_ns)(random_);
}

std::unique_ptr<ApiCall> SimulatedApiClient::start(ApiRequest request, Lines lines, bool is_watch) {
  const auto exchange = std::make_shared<Exchange>(*this, std::move(request), std::move(lines), is_watch);
  exchange->set_server(server_, token);
  exchanges_.insert(exchange);
  exchange->start();
  return std::make_unique<ExchangeCall>([weak = std::weak_ptr<Exchange>(exchange)] {
    if (const auto alive = weak.lock()) alive->give_up();
  });
}

std::unique_ptr<ApiCall> SimulatedApiClient::send(ApiRequest request, Answered answered) {
  return start(std::move(request), {.line = nullptr, .ended = std::move(answered)}, /*is_watch=*/false);
}

std::unique_ptr<ApiCall> SimulatedApiClient::watch(ApiRequest request, Lines lines) {
  return start(std::move(request), std::move(lines), /*is_watch=*/true);
}

std::unique_ptr<ApiCall> SimulatedApiClient::after(Nanoseconds length, std::function<void()> act) {
  const auto shared = std::make_shared<std::function<void()>>(std::move(act));
  time_.at(now() + length, [weak = std::weak_ptr<std::function<void()>>(shared)] {
    if (const auto alive = weak.lock()) (*alive)();
  });
  return std::make_unique<ExchangeCall>([held = shared]() mutable { held.reset(); });
}

void SimulatedApiClient::set_connected(bool is_connected) {
  is_connected_ = is_connected;
  if (is_connected) return;
  for (const auto& exchange : std::set(exchanges_)) exchange->lose();
}

void SimulatedApiClient::forget_calls() {
  for (const auto& exchange : std::set(exchanges_)) exchange->give_up();
}

}  // namespace carve::kubernetes
