// SPDX-License-Identifier: Apache-2.0
#include "guestlink/orders.h"

#include "guestwire/proof.h"

namespace agbox::guestlink {

namespace v1 = guest::v1;

std::string new_secret() {
  return guestwire::random_bytes(guestwire::kSecretSize);
}

v1::ToGuest welcome_for(const Expectation& expectation) {
  v1::ToGuest message;
  v1::Welcome* welcome = message.mutable_welcome();
  welcome->set_uid(expectation.uid);
  welcome->set_gid(expectation.gid);
  for (const std::uint32_t gid : expectation.supplemental_gids) welcome->add_supplemental_gids(gid);
  welcome->set_image_user(expectation.image_user);
  for (const MountExpected& mount : expectation.mounts) {
    v1::Mount* entry = welcome->add_mounts();
    entry->set_target(mount.target);
    entry->set_anonymous_volume(mount.anonymous_volume);
  }
  return message;
}

v1::ToGuest go_for(const GoOrder& order) {
  v1::ToGuest message;
  v1::Go* go = message.mutable_go();
  go->set_secret(order.secret);
  for (const std::string& word : order.entrypoint) go->add_entrypoint(word);
  for (const std::string& word : order.command) go->add_command(word);
  go->set_working_directory(order.working_directory);
  go->set_entrypoint_limit_ms(static_cast<std::uint32_t>(order.entrypoint_limit.count()));
  return message;
}

v1::ToGuest probe_for(std::uint64_t id, const ProbeTarget& target) {
  v1::ToGuest message;
  v1::TryConnection* order = message.mutable_try_connection();
  order->set_id(id);
  order->set_address(target.address.value);
  order->set_port(target.port);
  order->set_limit_ms(static_cast<std::uint32_t>(target.limit.count()));
  return message;
}

v1::ToGuest receive_for(std::uint64_t id, const TreeOrder& order) {
  v1::ToGuest message;
  v1::ReceiveTree* receive = message.mutable_receive_tree();
  receive->set_id(id);
  receive->set_target(order.target);
  receive->set_single_file(order.is_single_file);
  receive->set_outside_mounts(order.is_outside_mounts);
  return message;
}

void fill(v1::TerminalSize& message, TerminalSize size) {
  message.set_rows(size.rows);
  message.set_columns(size.columns);
}

v1::ToGuest files_for(std::uint64_t id, const FileOrder& order) {
  v1::ToGuest message;
  switch (order.direction) {
    case FileOrder::Direction::In: {
      v1::PutFiles* put = message.mutable_put_files();
      put->set_id(id);
      put->set_target(order.path);
      put->set_content(order.is_content);
      put->set_as_root(order.as_root);
      break;
    }
    case FileOrder::Direction::Out: {
      v1::GetFiles* get = message.mutable_get_files();
      get->set_id(id);
      get->set_path(order.path);
      get->set_as_root(order.as_root);
      break;
    }
  }
  return message;
}

v1::ToGuest start_for(const ExecOrder& order, std::uint64_t free_space_reserve_bytes) {
  v1::ToGuest message;
  v1::StartExec* start = message.mutable_start_exec();
  start->set_exec_id(order.exec_id);
  for (const std::string& word : order.command) start->add_command(word);
  start->set_working_directory(order.working_directory);
  for (const std::string& setting : order.environment) start->add_environment(setting);
  start->set_output_limit_bytes(order.output_limit_bytes);
  start->set_free_space_reserve_bytes(free_space_reserve_bytes);
  start->set_user(order.user);
  start->set_has_input(order.has_input);
  if (order.terminal) fill(*start->mutable_terminal(), *order.terminal);
  return message;
}

}  // namespace agbox::guestlink
