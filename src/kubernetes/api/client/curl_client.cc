#include "kubernetes/api/client/curl_client.h"

#include <map>
#include <optional>
#include <vector>

#include "kubernetes/api/client/curl_lane.h"
#include "kubernetes/api/client/transfer.h"

namespace carve::kubernetes {

class CurlApiClient::State : public std::enable_shared_from_this<State> {
 public:
  State(os::Loop& loop, Connection connection, CurlClientSettings settings)
      : loop_(loop), connection_(std::move(connection)), settings_(std::move(settings)) {}
  ~State() {
    for (const auto& [handle, transfer] : std::map(running_)) transfer->stop();
  }

  os::Loop& loop() { return loop_; }
  Nanoseconds now() const { return settings_.now(); }

  std::shared_ptr<Transfer> begin(ApiRequest request, Lines lines, bool is_watch) {
    auto transfer = std::make_shared<Transfer>(
        std::move(request), std::move(lines), is_watch,
        Transfer::Limits{.answer_bytes = settings_.answer_bytes, .line_bytes = settings_.line_bytes});
    if (transfer->request().deadline_ns > 0) transfer->due = now() + transfer->request().deadline_ns;
    read_token(token_age_ns);
    if (token_.empty() && !token_problem_.empty())
      fail_later(transfer, token_problem_);
    else if (!start(transfer))
      fail_later(transfer, "memory is exhausted");
    return transfer;
  }
  void end(Transfer& transfer) {
    transfer.take_callback();
    if (!transfer.is_running()) return;
    running_.erase(transfer.handle());
    transfer.stop();
  }
  // Abandons a connection: later calls use another one.
  void leave(const std::shared_ptr<CurlLane>& lane) {
    for (auto& current : lanes_)
      if (lane && current == lane) current.reset();
  }

 private:
  bool start(const std::shared_ptr<Transfer>& transfer) {
    auto& lane = lanes_[transfer->is_watch() ? 1 : 0];
    if (!lane)
      lane = CurlLane::make(loop_, [weak = weak_from_this()](CurlLane& acted) {
        if (const auto state = weak.lock()) state->deliver(acted);
      });
    // A transfer that is already past its deadline gets one more millisecond.
    const Nanoseconds patience = transfer->due > 0 ? std::max<Nanoseconds>(transfer->due - now(), 1) : 0;
    if (!transfer->start(lane, connection_, token_, settings_.user_agent, patience)) return false;
    running_[transfer->handle()] = transfer;
    return true;
  }
  void fail_later(const std::shared_ptr<Transfer>& transfer, const std::string& problem) {
    loop_.after(0, [weak = std::weak_ptr<Transfer>(transfer), problem] {
      const auto alive = weak.lock();
      const Answered callback = alive ? alive->take_callback() : nullptr;
      if (callback) callback({.status = 0, .body = "", .problem = problem, .may_have_happened = false});
    });
  }

  // Returns whether the token has changed.
  bool read_token(Nanoseconds min_age) {
    if (connection_.token_file.empty()) {
      token_ = connection_.token;
      return false;
    }
    if (token_read_at_ && now() - *token_read_at_ < min_age) return false;
    token_read_at_ = now();
    auto token = kubernetes::read_token(connection_.token_file, settings_.sources);
    token_problem_ = token ? "" : token.error().message;
    if (!token || *token == token_) return false;
    token_ = std::move(*token);
    return true;
  }

  // Calls back with the data that libcurl has received. A callback may start and end calls, including those
  // that this loop has not reached yet.
  void deliver(CurlLane& lane) {
    for (const auto& [handle, transfer] : std::map(running_))
      if (transfer->is_running() && transfer->is_watch()) transfer->deliver_lines();
    std::vector<std::pair<std::shared_ptr<Transfer>, CURLcode>> ended;
    lane.take_ended([&](CURL* handle, CURLcode code) {
      if (const auto found = running_.find(handle); found != running_.end())
        ended.emplace_back(found->second, code);
    });
    for (const auto& [transfer, code] : ended)
      if (transfer->is_running()) finish(transfer, code);
  }
  void finish(const std::shared_ptr<Transfer>& transfer, CURLcode code) {
    ApiAnswer answer = transfer->answer(code);
    if (code == CURLE_OPERATION_TIMEDOUT) leave(transfer->lane());
    running_.erase(transfer->handle());
    transfer->stop();
    if (answer.status == 401 && !transfer->has_retried) {
      transfer->has_retried = true;
      if (read_token(0) && start(transfer)) return;
    }
    const Answered callback = transfer->take_callback();
    callback(std::move(answer));
  }

  os::Loop& loop_;
  const Connection connection_;
  const CurlClientSettings settings_;
  std::string token_, token_problem_;
  std::optional<Nanoseconds> token_read_at_;
  std::shared_ptr<CurlLane> lanes_[2];  // For other calls and for watches; null if not open.
  std::map<CURL*, std::shared_ptr<Transfer>> running_;
};

namespace {

class ActiveCall final : public ApiCall {
 public:
  ActiveCall(std::function<void()> end, std::function<void()> leave)
      : end_(std::move(end)), leave_(std::move(leave)) {}
  ~ActiveCall() override { end_(); }
  void distrust_connection() override {
    if (leave_) leave_();
  }

 private:
  std::function<void()> end_, leave_;
};

}  // namespace

CurlApiClient::CurlApiClient(os::Loop& loop, Connection connection, CurlClientSettings settings)
    : state_(std::make_shared<State>(loop, std::move(connection), std::move(settings))) {}

CurlApiClient::~CurlApiClient() = default;

Nanoseconds CurlApiClient::now() const { return state_->now(); }

std::unique_ptr<ApiCall> CurlApiClient::send(ApiRequest request, Answered answered) {
  return begin(std::move(request), {.line = nullptr, .ended = std::move(answered)}, /*is_watch=*/false);
}

std::unique_ptr<ApiCall> CurlApiClient::watch(ApiRequest request, Lines lines) {
  return begin(std::move(request), std::move(lines), /*is_watch=*/true);
}

std::unique_ptr<ApiCall> CurlApiClient::begin(ApiRequest request, Lines lines, bool is_watch) {
  const auto transfer = state_->begin(std::move(request), std::move(lines), is_watch);
  const std::weak_ptr<State> state = state_;
  return std::make_unique<ActiveCall>(
      [state, transfer] {
        if (const auto alive = state.lock()) alive->end(*transfer);
      },
      [state, transfer] {
        if (const auto alive = state.lock()) alive->leave(transfer->lane());
      });
}

std::unique_ptr<ApiCall> CurlApiClient::after(Nanoseconds length, std::function<void()> act) {
  const auto shared = std::make_shared<std::function<void()>>(std::move(act));
  state_->loop().after(length, [weak = std::weak_ptr<std::function<void()>>(shared)] {
    if (const auto alive = weak.lock()) (*alive)();
  });
  return std::make_unique<ActiveCall>([held = shared]() mutable { held.reset(); }, nullptr);
}

}  // namespace carve::kubernetes
