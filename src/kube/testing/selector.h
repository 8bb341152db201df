// Label and field selectors, and the paths of the API, as the fake of the API server understands them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace carve::kube {

// "/api/v1/namespaces/a/pods/p/status?x=y", divided.
struct ApiPath {
  std::string prefix;      // "/api/v1", "/apis/coordination.k8s.io/v1"
  std::string name_space;  // Empty: none, or all.
  std::string resource;    // "pods"; empty: this is no path of a resource.
  std::string name;        // Empty: the collection.
  std::string subresource;
  std::map<std::string, std::string> query;  // Decoded.

  std::string collection() const { return prefix + "/" + resource; }
};
ApiPath parse_api_path(std::string_view target);

// A comma list of conditions on texts by name: "a=b", "a!=b", "a" (it exists), "!a".
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

}  // namespace carve::kube
