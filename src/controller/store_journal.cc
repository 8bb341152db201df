#include "controller/store_journal.h"

#include "controller/objects/kind_table.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

// A map of texts as a document.
struct Texts {
  std::map<std::string, std::string> texts;
};

std::string written(const std::map<std::string, std::string>& texts) { return api::write(Texts{texts}); }

ObjectRecord record_of(const Object& object) {
  return {.kind = std::string(objects::text_of(object.key.kind).kind),
          .name_space = object.key.namespace_,
          .name = object.key.name,
          .account = object.account,
          .uid = object.uid,
          .owner_uid = object.owner_uid,
          .generation = object.generation,
          .version = object.version,
          .created_ns = object.created_ns,
          .is_ending = object.is_ending,
          .labels = written(object.labels),
          .annotations = written(object.annotations),
          .spec = object.spec.json(),
          .status = object.status.json()};
}

Outcome<Object> object_of(const ObjectRecord& record) {
  const auto kind = objects::parse_kind(record.kind);
  const auto labels = api::read<Texts>(record.labels, api::Reading::strict);
  const auto annotations = api::read<Texts>(record.annotations, api::Reading::strict);
  if (!kind || !labels || !annotations)
    return failure(FailureKind::failed_precondition, "the controller database has an invalid object {} {}",
                   record.kind, record.name);
  return Object{.key = {*kind, record.name_space, record.name},
                .labels = labels->texts,
                .annotations = annotations->texts,
                .account = record.account,
                .uid = record.uid,
                .owner_uid = record.owner_uid,
                .generation = record.generation,
                .version = record.version,
                .created_ns = record.created_ns,
                .is_ending = record.is_ending,
                .spec = row_of(*kind).read_spec(record.spec),
                .status = row_of(*kind).read_status(record.status)};
}

TokenRecord record_of(const Token& token) {
  return {.name = token.name,
          .role = std::string(text(token.role)),
          .account = token.account,
          .sha256 = token.sha256,
          .created_ns = token.created_ns,
          .expires_ns = token.expires_ns};
}

EventRecord record_of(const EventKey& key) {
  return {.kind = std::string(objects::text_of(key.object.kind).kind),
          .name_space = key.object.namespace_,
          .name = key.object.name,
          .uid = key.uid,
          .reason = std::string(carve::text(key.reason))};
}

}  // namespace

Outcome<std::vector<Object>> StoreJournal::objects() {
  const auto records = store_.all<ObjectRecord>();
  if (!records) return tl::unexpected(records.error());
  std::vector<Object> out;
  for (const ObjectRecord& record : *records) {
    auto object = object_of(record);
    if (!object) return tl::unexpected(object.error());
    out.push_back(std::move(*object));
  }
  return out;
}

Outcome<std::vector<Token>> StoreJournal::tokens() {
  const auto records = store_.all<TokenRecord>();
  if (!records) return tl::unexpected(records.error());
  std::vector<Token> out;
  for (const TokenRecord& record : *records)
    out.push_back({.name = record.name,
                   .role = parse_role(record.role).value_or(http::Role::viewer),
                   .account = record.account,
                   .sha256 = record.sha256,
                   .created_ns = record.created_ns,
                   .expires_ns = record.expires_ns});
  return out;
}

// Events with a reason unknown to this program are skipped.
Outcome<std::vector<KeptEvent>> StoreJournal::events() {
  auto records = store_.all<EventRecord>();
  if (!records) return tl::unexpected(records.error());
  std::vector<KeptEvent> out;
  for (EventRecord& record : *records) {
    const auto kind = objects::parse_kind(record.kind);
    const auto reason = carve::parse<objects::EventReason>(record.reason);
    if (!kind || !reason) continue;
    out.push_back({.key = {.object = {*kind, record.name_space, record.name},
                           .uid = std::move(record.uid),
                           .reason = *reason},
                   .message = std::move(record.message),
                   .count = record.count,
                   .first_ns = record.first_ns,
                   .last_ns = record.last_ns});
  }
  return out;
}

Outcome<void> StoreJournal::write(std::span<const Object> objects) {
  std::vector<ObjectRecord> records;
  for (const Object& object : objects) records.push_back(record_of(object));
  return store_.write(records);
}

Outcome<void> StoreJournal::remove(const ObjectKey& key, uint64_t version) {
  const auto records =
      store_.objects_named(std::string(objects::text_of(key.kind).kind), key.namespace_, key.name);
  if (!records) return tl::unexpected(records.error());
  return records->empty() ? Outcome<void>() : store_.remove(records->front(), version);
}

Outcome<void> StoreJournal::write(const Token& token) { return store_.write(record_of(token)); }
Outcome<void> StoreJournal::remove(const Token& token) { return store_.remove(record_of(token)); }

Outcome<std::optional<KeptAnswer>> StoreJournal::find(const std::string& caller, const std::string& key) {
  auto records = store_.answers(caller, key);
  if (!records) return tl::unexpected(records.error());
  if (records->empty()) return std::optional<KeptAnswer>();
  AnswerRecord& r = records->front();
  return KeptAnswer{.caller = r.caller,
                    .key = r.key,
                    .sha256 = r.sha256,
                    .at_ns = r.at_ns,
                    .status = r.status,
                    .type = r.type,
                    .etag = r.etag,
                    .body = std::move(r.body)};
}

Outcome<void> StoreJournal::write(const KeptAnswer& a) {
  return store_.write(AnswerRecord{.caller = a.caller,
                                   .key = a.key,
                                   .sha256 = a.sha256,
                                   .at_ns = a.at_ns,
                                   .status = a.status,
                                   .type = a.type,
                                   .etag = a.etag,
                                   .body = a.body},
                      a.at_ns - answer_lifetime_ns, max_kept_answers);
}

Outcome<void> StoreJournal::write(std::span<const KeptEvent> changed, std::span<const EventKey> removed) {
  std::vector<EventRecord> written, deleted;
  for (const KeptEvent& event : changed) {
    EventRecord& record = written.emplace_back(record_of(event.key));
    record.message = event.message;
    record.count = event.count;
    record.first_ns = event.first_ns;
    record.last_ns = event.last_ns;
  }
  for (const EventKey& key : removed) deleted.push_back(record_of(key));
  return store_.write(written, deleted);
}

}  // namespace carve::controller
