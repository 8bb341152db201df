#include "dialects/pod/cluster_service.h"

#include <gmock/gmock.h>

namespace carve::dialects {
namespace {

TEST(ClusterService, distinguishes_carve_services_from_kubernetes_services) {
  EXPECT_TRUE(is_cluster_service(R"({"apiVersion":"v1","kind":"Service"})"));
  EXPECT_FALSE(is_cluster_service(R"({"apiVersion":"carve.dev/v1","kind":"Service"})"));
  EXPECT_FALSE(is_cluster_service(R"({"apiVersion":"v1","kind":"Pod"})"));
}

TEST(ClusterService, uses_the_ports_of_the_container_that_runs) {
  const PodFace face = pod_face(R"({"kind":"Pod","metadata":{"labels":{"app":"a"}},"spec":{"containers":[
      {"name":"proxy","ports":[{"name":"http","containerPort":80}]},
      {"name":"model","ports":[{"name":"http","containerPort":8000},{"name":"bad","containerPort":"x"}],
       "resources":{"limits":{"nvidia.com/gpumem":4096}}}]}})");
  EXPECT_EQ(face.labels, (std::map<std::string, std::string>{{"app", "a"}}));
  EXPECT_EQ(face.ports, (std::map<std::string, uint32_t>{{"http", 8000}}));
  EXPECT_TRUE(pod_face("{").labels.empty());
}

TEST(ClusterService, a_port_variable_gives_each_replica_its_own_port) {
  ClusterService service{
      .name = "a", .name_space = {}, .selector = {}, .port = 8000, .target = "30000", .warnings = {}};
  objects::ServiceSpec spec{.replicas = 3};
  spec.run.command = {"serve"};
  EXPECT_FALSE(give_port(service, {}, spec));
  spec.run.env["PORT"] = "30000";
  ASSERT_TRUE(give_port(service, {}, spec));
  EXPECT_EQ(spec.port, 8000u);
  EXPECT_FALSE(spec.target_port);
}

}  // namespace
}  // namespace carve::dialects
