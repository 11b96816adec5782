// SPDX-License-Identifier: Apache-2.0
// Runs a database next to a sandbox, which no other sandbox reaches.
#include <agbox/agbox.h>

#include <iostream>

agbox::Result<void> use_database() {
  auto client = agbox::Client::open();
  if (!client) return std::unexpected(client.error());

  const agbox::Service database{
      .name = "db",
      .image = "postgres:15",
      .envs = {{"POSTGRES_HOST_AUTH_METHOD", "trust"}},
      .health_check = agbox::HealthCheck{
          .test = {"CMD", "pg_isready", "-q", "-h", "127.0.0.1", "-U", "postgres"}}};
  // Ready when the database is healthy. The image of the sandbox itself is one that has psql.
  auto box = client->create({.image = "postgres:15", .required_services = {database}});
  if (!box) return std::unexpected(box.error());

  auto answer = box->run({"psql", "-h", "db", "-U", "postgres", "-Atc", "select 6 * 7"});
  if (!answer) return std::unexpected(answer.error());
  std::cout << answer->out;
  auto version = box->run({.args = {"postgres", "--version"}, .container = "db"});
  if (!version) return std::unexpected(version.error());
  std::cout << version->out;
  return {};
}

int main() {
  const auto done = use_database();
  if (done) return 0;
  std::cerr << done.error().message << "\n";
  return 1;
}
