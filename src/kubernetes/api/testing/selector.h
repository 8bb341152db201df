// Label and field selectors and API paths, as the fake API server parses them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace carve::kubernetes {

// "/api/v1/namespaces/a/pods/p/status?x=y", split.
struct ApiPath {
  std::string prefix;      // "/api/v1", "/apis/coordination.k8s.io/v1"
  std::string name_space;  // Empty if the kind has no namespaces, or for all of them.
  std::string resource;    // "pods". Empty if the path names no resource.
  std::string name;        // Empty for the whole collection.
  std::string subresource;
  std::map<std::string, std::string> query;  // Decoded.

  std::string collection() const { return prefix + "/" + resource; }
};
ApiPath parse_api_path(std::string_view target);

// A comma-separated list of conditions on named texts: "a=b", "a!=b", "a" (exists), "!a".
class Selector {
 public:
  enum class Of { labels, fields };
  Selector(Of of, std::string_view text);
  bool matches(const nlohmann::json& object) const;

 private:
  struct Condition {
    std::string key;
    enum class Kind { equals, differs, exists, is_absent } kind;
    std::string value;
  };
  Of of_;
  std::vector<Condition> conditions_;
};

}  // namespace carve::kubernetes
