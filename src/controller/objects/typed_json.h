// The spec or status of an object: a value and its JSON text. The text is parsed once, when the object is
// read from the database or a request, and formatted once, when a value is set. Copies share both, which are
// immutable.
#pragma once

#include <memory>
#include <string>
#include <typeinfo>
#include <utility>

#include "core/invariant.h"
#include "wire/api/json.h"

namespace carve::controller {

class TypedJson {
 public:
  // A default-constructed object has the JSON "{}" and a value with the defaults of its type.
  TypedJson() = default;

  template <api::Document T>
  TypedJson(T value) {  // NOLINT(google-explicit-constructor): a value is assigned to a spec.
    std::string json = api::write(value);
    content_ = std::make_shared<ContentOf<T>>(std::move(json), true, std::move(value));
  }

  // Parses a text leniently, ignoring fields that T does not have. The JSON is kept byte for byte. If it
  // cannot be parsed, the value has the defaults.
  template <api::Document T>
  static TypedJson read(std::string json) {
    TypedJson out;
    auto value = api::read<T>(json, api::Reading::lenient);
    const bool is_readable = value.has_value();
    out.content_ =
        std::make_shared<ContentOf<T>>(std::move(json), is_readable, is_readable ? std::move(*value) : T{});
    return out;
  }

  // Returns a text whose type is not known yet, without a value.
  static TypedJson unread(std::string json) {
    struct Unknown {};
    TypedJson out;
    out.content_ = std::make_shared<ContentOf<Unknown>>(std::move(json), false, Unknown{});
    return out;
  }

  const std::string& json() const { return content_ ? content_->json : empty_json(); }
  bool is_readable() const { return !content_ || content_->is_readable; }

  // Returns the value, which must be a T. It is valid as long as this object or a copy of it lives.
  template <api::Document T>
  const T& as() const {
    static const T defaults{};
    if (!content_) return defaults;
    invariant(*content_->type == typeid(T), "the kind of an object decides the type of its spec and status");
    return static_cast<const ContentOf<T>&>(*content_).value;
  }

  // Sets a changed value. If it equals the current one, the JSON text is kept as it was stored.
  template <api::Document T>
  void set(T value) {
    TypedJson next(std::move(value));
    if (!content_ || !content_->is_readable || api::write(as<T>()) != next.json()) *this = std::move(next);
  }

  // Compares the JSON texts.
  friend bool operator==(const TypedJson& a, const TypedJson& b) {
    return a.content_ == b.content_ || a.json() == b.json();
  }

 private:
  struct Content {
    const std::type_info* type;
    std::string json;
    bool is_readable;
  };
  template <class T>
  struct ContentOf : Content {
    ContentOf(std::string text, bool was_read, T of)
        : Content{&typeid(T), std::move(text), was_read}, value(std::move(of)) {}
    T value;
  };
  static const std::string& empty_json() {
    static const std::string text = "{}";
    return text;
  }

  std::shared_ptr<const Content> content_;
};

}  // namespace carve::controller
