// The columns of objects, tokens and events in controller.db (sqlite/rows.h). When an object is read, its
// spec and its status remain unparsed texts; its kind, which is an earlier column, determines their types.
#pragma once

#include <concepts>
#include <type_traits>

#include "controller/objects/object_events.h"
#include "controller/objects/token_book.h"
#include "sqlite/rows.h"
#include "wire/api/json.h"

namespace carve::controller {

// A map of texts, stored as JSON in one column.
template <class Map>
struct TextsColumn {
  Map& texts;
};
template <class Map>
TextsColumn(Map&) -> TextsColumn<Map>;
struct TextsDocument {
  std::map<std::string, std::string> texts;
};

template <class T, class Of>
concept Either = std::same_as<std::remove_const_t<T>, Of>;

void each_column(Either<Object> auto& object, const auto& visit) {
  visit("kind", object.key.kind);
  visit("name_space", object.key.namespace_);
  visit("name", object.key.name);
  visit("account", object.account);
  visit("uid", object.uid);
  visit("owner_uid", object.owner_uid);
  visit("generation", object.generation);
  visit("version", object.version);
  visit("created_ns", object.created_ns);
  visit("is_ending", object.is_ending);
  visit("labels", TextsColumn{object.labels});
  visit("annotations", TextsColumn{object.annotations});
  visit("spec", object.spec);
  visit("status", object.status);
}

void each_column(Either<KeptEvent> auto& event, const auto& visit) {
  visit("kind", event.key.object.kind);
  visit("name_space", event.key.object.namespace_);
  visit("name", event.key.object.name);
  visit("uid", event.key.uid);
  visit("reason", event.key.reason);
  visit("message", event.message);
  visit("count", event.count);
  visit("first_ns", event.first_ns);
  visit("last_ns", event.last_ns);
  visit("caller", event.caller);
}

}  // namespace carve::controller

namespace carve::sqlite::rows {

template <>
struct TextColumn<objects::Kind> {
  static std::string text(objects::Kind kind) { return std::string(objects::text_of(kind).kind); }
  static bool read(const std::string& word, objects::Kind& kind) {
    const auto known = objects::parse_kind(word);
    if (known) kind = *known;
    return known.has_value();
  }
};

// An unknown role has the rights of a viewer.
template <>
struct TextColumn<http::Role> {
  static std::string text(http::Role role) { return std::string(controller::text(role)); }
  static bool read(const std::string& word, http::Role& role) {
    role = controller::parse_role(word).value_or(http::Role::viewer);
    return true;
  }
};

template <>
struct TextColumn<controller::TypedJson> {
  static std::string text(const controller::TypedJson& value) { return value.json(); }
  static bool read(std::string json, controller::TypedJson& value) {
    value = controller::TypedJson::unread(std::move(json));
    return true;
  }
};

template <class Map>
struct TextColumn<controller::TextsColumn<Map>> {
  static std::string text(const controller::TextsColumn<Map>& column) {
    return api::write(controller::TextsDocument{column.texts});
  }
  static bool read(const std::string& json, const controller::TextsColumn<Map>& column) {
    auto document = api::read<controller::TextsDocument>(json, api::Reading::strict);
    if (!document) return false;
    if constexpr (!std::is_const_v<Map>) column.texts = std::move(document->texts);
    return true;
  }
};

}  // namespace carve::sqlite::rows
