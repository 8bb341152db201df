// The programs of a job's pods: commands and environments. Engines run unchanged; this avoids their known
// problems on one machine (Spark 4.3, Ray 2.60, both tried):
//
// * If the port of a Spark master is taken, the master takes the next one, and its workers find another
//   master: spark.port.maxRetries=0. Spark listens on 127.0.0.1 (SPARK_LOCAL_IP), and its connections need a
//   secret. Spark 4 serves applications by REST at port 6066, which a second master cannot have: it is turned
//   off.
// * Each Spark Worker is inside its own slice, because executors are its children. The Worker hands its
//   device over to the executor, so only the Worker and the driver run a discovery script.
// * The nodes of one Ray cluster share a network namespace of their own, because Ray listens on every
//   interface. Each has its own folder and agent port: two that share a folder kill each other. A folder's
//   path is short, because its sockets' paths have at most 107 bytes. The dashboard, which also serves Ray's
//   job API, is forwarded to a port of 127.0.0.1 outside of that network. It requires the job's secret as its
//   token.
#pragma once

#include "engines/engine_pods.h"
#include "objects/job_object.h"

namespace carve::engines {

// The machine's resources for the job.
struct EnginePlaces {
  std::string scripts;     // Folder of the scripts that are installed with Carve.
  std::string job_folder;  // Prefix of the pods' folders, of at most 30 bytes: "/tmp/carve-18a0f".
  uint32_t port = 0;       // Port of Spark's master, or of Ray's dashboard.
  std::string secret;      // For the engine's connections.
};

struct PodProgram {
  std::vector<std::string> command;
  std::map<std::string, std::string> env;  // In addition to the job's.
  std::vector<std::string> cleanup;        // A command to run when the program has ended.
};

// Returns the program of one pod. `pods` is engine_pods() of the job.
PodProgram pod_program(const objects::JobSpec&, const std::string& job, const EnginePods& pods,
                       workload::PodId, const EnginePlaces&);

// Returns the parameters that the job gets and its user did not set: sizes that follow from its slice. A key
// without a dot is an environment variable of the pods with a slice.
std::vector<objects::DerivedParameter> derived_parameters(const objects::JobSpec&, const EnginePods&);

// Returns messages about the parts of the job that have no effect.
std::vector<std::string> replaced_parameters(const objects::JobSpec&);

// The script by which Spark's driver and Workers find the devices of their slice. It runs the user's script,
// named by the variable, if its process can execute that file; the controller opens no file that a user
// names.
inline constexpr std::string_view discovery_script_name = "getGpusResources.sh";
inline constexpr std::string_view discovery_script_variable = "CARVE_DISCOVERY_SCRIPT";

}  // namespace carve::engines
