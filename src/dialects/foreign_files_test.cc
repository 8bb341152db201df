#include "dialects/foreign_files.h"

#include <gmock/gmock.h>

#include "yaml/documents.h"

namespace carve::dialects {
namespace {

using testing::HasSubstr;

std::string foreign_problem(const std::string& yaml) {
  const auto documents = yaml::documents_of(yaml);
  if (!documents) return documents.error().front().message;
  const auto problem = foreign_file_problem(documents->front());
  return problem ? problem->message : "";
}

TEST(ForeignFiles, each_error_names_the_tool_and_the_fix) {
  EXPECT_THAT(foreign_problem("services:\n  model: {image: x}\n  db: {image: y}\n"),
              HasSubstr("services: this is a Compose file with the services model, db, which Carve does not "
                        "support; write"));
  EXPECT_THAT(foreign_problem("version: '3.8'\nname: a\nservices: {model: {image: x}}\nvolumes: {v: {}}\n"),
              HasSubstr("this is a Compose file"));
  EXPECT_THAT(
      foreign_problem("replicaCount: 1\nimage: {repository: x, tag: y}\nservice: {port: 80}\n"),
      HasSubstr("replicaCount: these are the values of a Helm chart; apply its manifests: helm template"));
  EXPECT_THAT(foreign_problem("image: {repository: x}\nresources: {limits: {nvidia.com/gpu: 1}}\n"),
              HasSubstr("these are the values of a Helm chart"));
  EXPECT_THAT(foreign_problem("apiVersion: v2\nname: llm\nversion: 0.1.0\n"),
              HasSubstr("the Chart.yaml of a Helm"));
  EXPECT_THAT(
      foreign_problem("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a]\n"),
      HasSubstr("kubectl kustomize DIR | carve apply -f -"));
}

TEST(ForeignFiles, recognizes_a_template_that_is_not_yaml) {
  const auto is_template = [](const char* text) { return helm_template_problem(text).has_value(); };
  EXPECT_TRUE(is_template("metadata: {name: {{ .Release.Name }}}\n"));
  EXPECT_TRUE(is_template("{{- if .Values.gpu.enabled }}\nkind: Pod\n{{- end }}\n"));
  EXPECT_TRUE(is_template("kind: Pod\nmetadata: {{ include \"llm.labels\" . }}\n"));
  EXPECT_FALSE(is_template("metadata: {name: {{ x }}, note: .Release.Name}\n"));
  EXPECT_FALSE(is_template("metadata: .Values.x\n"));
  EXPECT_FALSE(is_template(""));
}

TEST(ForeignFiles, accepts_documents) {
  for (const char* text :
       {"apiVersion: carve.dev/v1\nkind: Service\nmetadata: {name: a}\nspec: {run: {command: [x]}}\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n",
        "{\"metadata\": {\"name\": \"a\"}, \"containers\": []}",
        "{\"name\": \"a\", \"containers\": [], \"image\": {}}", "{\"items\": []}"})
    EXPECT_EQ(foreign_problem(text), "") << text;
}

}  // namespace
}  // namespace carve::dialects
