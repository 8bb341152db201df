// Objects and tokens in controller.db: the journal of the registry and of the token book.
#pragma once

#include "controller/api/idempotency.h"
#include "controller/objects/object_events.h"
#include "controller/objects/object_registry.h"
#include "controller/objects/token_book.h"
#include "controller/store/controller_store.h"

namespace carve::controller {

class StoreJournal final : public Journal, public TokenJournal, public AnswerJournal, public EventJournal {
 public:
  explicit StoreJournal(ControllerStore& store) : store_(store) {}

  Outcome<std::vector<Object>> objects();
  Outcome<std::vector<Token>> tokens();
  Outcome<std::vector<KeptEvent>> events();

  Outcome<void> write(std::span<const Object>) override;
  Outcome<void> remove(const ObjectKey&, uint64_t version) override;
  Outcome<void> write(const Token&) override;
  Outcome<void> remove(const Token&) override;
  Outcome<std::optional<KeptAnswer>> find(const std::string& caller, const std::string& key) override;
  Outcome<void> write(const KeptAnswer&) override;
  Outcome<void> write(std::span<const KeptEvent> changed, std::span<const EventKey> removed) override;

 private:
  ControllerStore& store_;
};

}  // namespace carve::controller
