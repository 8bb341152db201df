// The custom resources of group carve.dev: one CustomResourceDefinition for each kind that a cluster keeps. The
// schemas come from the kinds' rows (controller/objects/kind_table.h), from which OpenAPI is generated as well;
// this folder adds only what a row does not have: scopes, printer columns, subresources, and the rules of
// src/objects/rules that a schema or CEL can express. Pure.
#pragma once

#include <string>
#include <string_view>

#include "objects/kind.h"
#include "wire/api/json_value.h"

namespace carve::controller {

// Returns whether a cluster keeps objects of the kind. Nodes are Kubernetes' own objects there.
constexpr bool is_custom_resource(objects::Kind kind) { return kind != objects::Kind::node; }

// Returns whether the kind has no namespace: its documents apply to all namespaces.
constexpr bool is_cluster_scoped(objects::Kind kind) {
  using enum objects::Kind;
  return kind == pool || kind == queue || kind == tariff || kind == budget;
}

// Returns "services.carve.dev".
std::string custom_resource_name(objects::Kind);

// Returns the path of the kind's objects, or of one object if `name` is given:
// "/apis/carve.dev/v1/namespaces/default/services/demo". An empty namespace means all of them.
std::string custom_resource_path(objects::Kind, const std::string& name_space = "",
                                 const std::string& name = "");

// Returns the CustomResourceDefinition of a kind.
api::Json custom_resource_definition(objects::Kind);

// The first line of the file with all definitions.
inline constexpr std::string_view custom_resource_head =
    "# Printed by carve-controller --custom-resources; a test fails if this file is out of date.\n";

// Returns all of them as YAML documents.
std::string custom_resource_definitions();

}  // namespace carve::controller
