#include "controller/runtime/runtime_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carve::controller {
namespace {

using testing::HasSubstr;

// Answers of HAProxy 2.6.12.
constexpr const char* processes =
    "#<PID>          <type>          <reloads>       <uptime>        <version>      \n"
    "18393           master          3 [failed: 1]   0d00h00m08s     2.6.12-1+deb12u4\n"
    "# workers\n"
    "19593           worker          1               0d00h00m01s     2.6.12-1+deb12u4\n"
    "# old workers\n"
    "18404           worker          3               0d00h00m08s     2.6.12-1+deb12u4\n"
    "18405           worker          2               0d00h00m08s     2.6.12-1+deb12u4\n"
    "# programs\n\n";

constexpr const char* servers =
    "1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight "
    "srv_time_since_last_change\n"
    "4 ns:web 1 a.1 127.0.0.1 2 0 10 10 3\n"
    "4 ns:web 2 b.2 127.0.0.1 2 8 7 5 0\n"
    "4 ns:web 3 c.3 127.0.0.1 0 1 1 1 0\n\n";

TEST(RuntimeAnswer, lists_the_workers_of_the_master) {
  const ProxyProcesses expected{
      .master = 18393, .reloads = 3, .failed_reloads = 1, .worker = 19593, .old_workers = {18404, 18405}};
  EXPECT_EQ(read_processes(processes), expected);
  EXPECT_EQ(read_processes("7 master 0 [failed: 0] 0d\n# workers\n# programs\n"),
            (ProxyProcesses{.master = 7}));
}

TEST(RuntimeAnswer, is_rejected_if_its_list_of_processes_has_another_form) {
  for (const char* answer :
       {"", "\n", "Unknown command", "7 master 0\n", "x master 0 [failed: 0]\n", "7 master x [failed: 0]\n",
        "7 master 0 [failed: x]\n", "-7 master 0 [failed: 0]\n", "7 master 0 [failed: 0\n", "7 worker 0 0d\n",
        "99999999999 master 0 [failed: 0]\n"}) {
    const auto read = read_processes(answer);
    ASSERT_FALSE(read) << answer;
    EXPECT_THAT(read.error().message, HasSubstr("cannot read HAProxy's response to 'show proc': "));
  }
}

TEST(RuntimeAnswer, lists_the_response_times_of_each_endpoint) {
  const std::string counters =
      "gpc0=3 gpc1=0 gpc2=2 gpc3=0 gpc4=0 gpc5=0 gpc6=0 gpc7=0 gpc8=0 gpc9=0 gpc10=0 gpc11=0 gpc12=0 gpc13=0 "
      "gpc14=1";
  const std::string head = "# table: carve-latency, type: string, size:1024, used:1\n";
  const auto rows = read_latency(head + "0x55cd: key=ns:a use=0 exp=0 gpt0=208 " + counters + "\n\n");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ((*rows)[0].proxy, "ns:a");
  EXPECT_EQ((*rows)[0].sum_ms, 208u);
  EXPECT_EQ((*rows)[0].counts[0], 3u);
  EXPECT_EQ((*rows)[0].counts[2], 2u);
  EXPECT_EQ((*rows)[0].counts[14], 1u);
  EXPECT_TRUE(read_latency("No such table\n")->empty()) << "a worker of an earlier version";
  EXPECT_TRUE(read_latency("")->empty());
  const std::string hostile[] = {"0x1: use=0 gpt0=1 " + counters,
                                 "0x1: key=a gpt0=x " + counters,
                                 "0x1: key=a gpt0=1 gpc0=1",
                                 "0x1: key=a gpt0=1 gpc15=1 " + counters,
                                 "0x1: key=a gpt0=1 gpcx=1 " + counters,
                                 "0x1: key=a gpt0=1 gpc0=-1 " + counters};
  for (const std::string& wrong : hostile) EXPECT_FALSE(read_latency(wrong)) << wrong;
}

TEST(RuntimeAnswer, is_parsed_by_column_names) {
  const auto rows = read_stat(
      "# "
      "svname,pxname,scur,qcur,new,type,req_tot,hrsp_1xx,hrsp_2xx,hrsp_3xx,hrsp_4xx,hrsp_5xx,hrsp_other,"
      "rtime,\n"
      "FRONTEND,ns:web:1,3,,text,0,70,1,2,3,4,5,6,,\n"
      "a.1,ns:web,2,1,,2,,,,,,,,15,\n\n");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0], (StatRow{.proxy = "ns:web:1",
                                 .name = "FRONTEND",
                                 .kind = StatRow::Kind::frontend,
                                 .sessions = 3,
                                 .requests = 70,
                                 .responses = {1, 2, 3, 4, 5, 6}}));
  EXPECT_EQ((*rows)[1], (StatRow{.proxy = "ns:web",
                                 .name = "a.1",
                                 .kind = StatRow::Kind::server,
                                 .queued = 1,
                                 .sessions = 2,
                                 .mean_response_ms = 15}));
}

TEST(RuntimeAnswer, is_rejected_with_the_missing_column_or_invalid_number) {
  const std::string names =
      "# "
      "pxname,svname,qcur,scur,type,req_tot,hrsp_1xx,hrsp_2xx,hrsp_3xx,hrsp_4xx,hrsp_5xx,hrsp_other,rtime\n";
  EXPECT_TRUE(read_stat(names + "a,b,0,0,2,0,0,0,0,0,0,0,0\n"));
  const auto column_of = [](const std::string& answer) {
    const auto read = read_stat(answer);
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(column_of(names + "a,b,0,x,2,0,0,0,0,0,0,0,0\n"), HasSubstr("the column scur is missing"));
  EXPECT_THAT(column_of(names + "a,b,-1,0,2,0,0,0,0,0,0,0,0\n"), HasSubstr("the column qcur is missing"));
  EXPECT_THAT(column_of(names + "a,b,0,0,9,0,0,0,0,0,0,0,0\n"), HasSubstr("the column type is missing"));
  EXPECT_THAT(column_of(names + "a,b,0\n"), HasSubstr("the column scur is missing"));
  EXPECT_THAT(column_of("# pxname,svname\na,b\n"), HasSubstr("the column qcur is missing"));
  EXPECT_THAT(column_of("a,b\n"), HasSubstr("the first line has no column names"));
  EXPECT_THAT(column_of(""), HasSubstr("the first line has no column names"));
}

TEST(RuntimeAnswer, shows_whether_a_server_is_ready_drained_or_in_maintenance) {
  const auto rows = read_servers(servers);
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[1], (ServerRow{"ns:web", "b.2", 8, 7}));
  EXPECT_FALSE(is_drained((*rows)[0]) || is_in_maintenance((*rows)[0]));
  EXPECT_TRUE(is_drained((*rows)[1]));
  EXPECT_FALSE(is_in_maintenance((*rows)[1]));
  EXPECT_TRUE(is_in_maintenance((*rows)[2]));
  EXPECT_FALSE(read_servers("2\n# be_name\n"));
  EXPECT_FALSE(read_servers("1\nbe_name\n"));
  EXPECT_FALSE(read_servers("1\n# be_name srv_name\na b\n"));
  EXPECT_FALSE(read_servers("1\n# be_name srv_name srv_admin_state srv_uweight\na b\n"));
}

TEST(RuntimeAnswer, has_the_values_of_show_info_by_name) {
  EXPECT_EQ(read_info("Name: HAProxy\ndescription: 12ab\n\n", "description"), "12ab");
  EXPECT_FALSE(read_info("Name: HAProxy\nx description: 12\n", "description"));
  EXPECT_FALSE(read_info("description:\n", "description"));
  EXPECT_FALSE(read_info("", "description"));
}

}  // namespace
}  // namespace carve::controller
