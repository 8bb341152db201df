// The programs of a job's pods: their commands and environments. Engines run unchanged; the settings avoid
// known problems of several jobs on one machine (tested with Spark 4.3 and Ray 2.60):
//
// * If the port of a Spark master is taken, the master uses the next one, and its workers find another job's
//   master; spark.port.maxRetries=0 prevents this. Spark listens on 127.0.0.1 (SPARK_LOCAL_IP), and its
//   connections require a secret. Spark 4's REST server at port 6066 is turned off, because a second master
//   could not use the same port.
// * Each Spark Worker runs inside its own slice, because executors are its children. The Worker passes its
//   device on to the executor, so only the Worker and the driver run a discovery script.
// * The nodes of one Ray cluster share a private network namespace, because Ray listens on every interface.
//   Each node has its own folder and agent port, because nodes that share a folder kill each other. A
//   folder's path is short, because the paths of its sockets may have at most 107 bytes. The dashboard, which
//   also serves Ray's job API, is forwarded to a port of 127.0.0.1 outside of that network and requires the
//   job's secret as its token.
#pragma once

#include "engines/engine_pods.h"
#include "objects/job_object.h"

namespace carve::engines {

// The resources of the machine for the job.
struct EnginePlaces {
  std::string scripts;     // Folder of the scripts installed with Carve.
  std::string job_folder;  // Prefix of the pods' folders, of at most 30 bytes: "/tmp/carve-18a0f".
  uint32_t port = 0;       // Port of Spark's master, or of Ray's dashboard.
  std::string secret;      // For the engine's connections.
};

struct PodProgram {
  std::vector<std::string> command;
  std::map<std::string, std::string> env;  // In addition to the job's environment.
  std::vector<std::string> cleanup;        // A command to run after the program has ended.
};

// Returns the program of one pod. `pods` is the result of engine_pods() for the job.
PodProgram pod_program(const objects::JobSpec&, const std::string& job, const EnginePods& pods,
                       workload::PodId, const EnginePlaces&);

// Returns the parameters that Carve adds because the user did not set them: sizes that depend on the slice. A
// key without a dot is an environment variable of the pods with a slice.
std::vector<objects::DerivedParameter> derived_parameters(const objects::JobSpec&, const EnginePods&);

// Returns messages about the settings of the job that have no effect.
std::vector<std::string> replaced_parameters(const objects::JobSpec&);

// The script with which Spark's driver and Workers find the devices of their slice. It runs the user's
// script, which the variable names, if its process can execute that file; the controller never opens a file
// that a user names.
inline constexpr std::string_view discovery_script_name = "getGpusResources.sh";
inline constexpr std::string_view discovery_script_variable = "CARVE_DISCOVERY_SCRIPT";

}  // namespace carve::engines
