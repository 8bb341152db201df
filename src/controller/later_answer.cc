#include "controller/later_answer.h"

#include <memory>
#include <utility>

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response answer_later(os::Workers& workers, const std::string& key, std::function<Answer()> work) {
  struct Waiting {
    http::LaterAnswer* to = nullptr;  // Null if the caller is gone or got its response.
    void answer(http::Response response) {
      if (http::LaterAnswer* const receiver = std::exchange(to, nullptr))
        receiver->answer(std::move(response));
    }
  };
  auto shared_work = std::make_shared<std::function<Answer()>>(std::move(work));
  return {.content = http::LaterContent{.begin = [&workers, key, shared_work](http::LaterAnswer& to) {
            auto waiting = std::make_shared<Waiting>(Waiting{.to = &to});
            const bool begun = workers.run(
                key,
                [waiting, shared_work]() -> os::Workers::Act {
                  Answer answer = std::exchange(*shared_work, nullptr)();
                  return [waiting, answer = std::move(answer)] {
                    if (waiting->to != nullptr) waiting->answer(answer());
                  };
                },
                [waiting] {
                  waiting->answer(refuse(FailureKind::unavailable,
                                         "the request took too long; check the file system, or send less"));
                });
            if (!begun)
              waiting->answer(refuse(FailureKind::resource_exhausted,
                                     "too many large requests are waiting; send one at a time"));
            return std::shared_ptr<void>(waiting.get(), [waiting](void*) { waiting->to = nullptr; });
          }}};
}

}  // namespace carve::controller
