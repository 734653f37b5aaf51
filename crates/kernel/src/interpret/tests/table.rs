//! Checks that at least three kernels have each kind of defect, and only that.
//!
//! Law: the other tests together cause each kind of report of the interpreter, in different
//! kernels; and none of them is found in a correct kernel (`is_right`).

use std::collections::BTreeSet;

use super::assembler::FOUND;
use super::{arrivals, background, barriers, bulk, claims, clusters, control, memory, mixed, phases, races, registers};
use crate::interpret::explanation;

/// Reports that are not caused by kernels: a limit that the caller sets, and a request to stop.
const NOT_OF_KERNELS: [&str; 2] = ["E1029", "E1032"];

/// Defects of wgmma: `tests/suite/group_products.rs` and `tests/suite/defects.rs` have three
/// kernels with each.
const OF_GROUPS: [&str; 3] = ["E1033", "E1034", "E1039"];

#[test]
fn every_defect_has_three_kernels() {
    for test in TESTS {
        test();
    }
    let found = FOUND.take();
    let counts: Vec<(&str, usize)> = found.iter().map(|(code, kernels)| (*code, kernels.len())).collect();
    let all: BTreeSet<String> = (1010..1100).map(|code| format!("E{code}")).collect();
    for code in all.iter().filter(|code| explanation(code).is_some()) {
        if NOT_OF_KERNELS.contains(&code.as_str()) || OF_GROUPS.contains(&code.as_str()) {
            continue;
        }
        let count = counts.iter().find(|(own, _)| own == code).map_or(0, |(_, count)| *count);
        assert!(count >= 3, "{code}: {count} kernels of {counts:?}");
    }
}

const TESTS: &[fn()] = &[
    arrivals::the_last_block_sees_what_all_have_left,
    arrivals::what_is_not_passed_on_is_found,
    arrivals::blocks_that_are_not_counted_once_are_found,
    arrivals::outputs_are_read_by_nobody_who_was_not_told,
    background::copies_are_read_after_waiting,
    background::copies_that_are_not_waited_for_are_found,
    background::rings_of_stages_work,
    background::rings_with_a_defect_are_found,
    background::bytes_are_left_alone_while_they_are_copied,
    background::a_copy_comes_after_what_was_done_before,
    background::zeros_where_nothing_is_copied,
    background::empty_groups_may_be_left_behind,
    claims::numbers_are_taken_until_none_is_left,
    claims::counts_that_are_not_where_they_were_are_found,
    clusters::blocks_of_a_cluster_exchange_numbers,
    clusters::a_block_is_there_from_its_beginning_to_its_end,
    clusters::arrivals_at_other_blocks_say_what_was_read,
    clusters::the_barrier_of_a_cluster_is_used_in_turns,
    clusters::whoever_waits_for_another_block_is_named,
    clusters::bytes_are_sent_to_another_block,
    control::loops_carry_values_all_at_once,
    control::loops_in_loops_have_their_own_variables,
    control::conditions_choose_lane_by_lane,
    control::loop_bounds_that_differ_are_found,
    control::inner_loops_may_differ_from_iteration_to_iteration,
    control::loop_variables_stay_in_range,
    control::barriers_that_not_all_reach_are_found,
    control::named_barriers_of_different_numbers_are_found,
    control::deadlocks_are_found,
    control::instructions_of_whole_warps_need_all_lanes,
    control::warps_that_are_not_full_have_no_whole_instructions,
    control::traps_are_found,
    control::a_run_has_a_limit,
    control::results_that_depend_on_the_schedule_are_found,
    control::floating_point_sums_in_any_order_are_not_compared,
    control::sizes_have_to_be_admitted,
    control::tensors_have_to_fit,
    control::tensors_have_a_limit,
    control::malformed_programs_are_refused,
    control::loop_bounds_of_one_warp_that_differ_are_found,
    memory::loads_and_stores_past_the_end_are_found,
    memory::accesses_past_the_end_of_shared_memory_are_found,
    memory::a_predicate_keeps_an_access_inside,
    memory::misaligned_vectors_are_found,
    memory::misaligned_shared_vectors_are_found,
    memory::reads_of_what_nobody_wrote_are_found,
    memory::bytes_beside_what_was_written_are_not_written,
    memory::shared_memory_is_new_in_every_block,
    memory::outputs_written_by_two_threads_are_found,
    memory::outputs_that_are_not_written_are_found,
    memory::roles_are_kept,
    barriers::phases_order_those_who_arrive_before_those_who_wait,
    barriers::too_few_arrivals_are_a_deadlock,
    barriers::a_phase_that_is_left_unfinished_is_found,
    barriers::more_arrivals_than_a_phase_counts_are_found,
    barriers::barriers_have_to_be_initialised,
    barriers::bytes_of_a_barrier_are_no_ones_else,
    bulk::stores_that_end_inside_a_chunk_are_found,
    bulk::stores_before_the_first_element_are_found,
    bulk::stores_that_stay_inside_are_right,
    bulk::boxes_are_loaded_and_stored,
    bulk::swizzled_boxes_lie_as_the_swizzle_says,
    bulk::bulk_loads_are_waited_for,
    bulk::expected_bytes_are_those_that_come,
    bulk::barriers_are_published_before_the_copy_engine_uses_them,
    bulk::bulk_stores_need_a_fence_of_the_writers,
    bulk::bulk_copies_race_as_others_do,
    bulk::bulk_stores_are_waited_for_before_the_end,
    bulk::boxes_are_aligned,
    bulk::a_ring_of_full_and_empty_barriers_works,
    bulk::a_fence_before_the_stores_is_none_after_them,
    phases::a_phase_waits_for_those_who_wait_for_the_one_before,
    phases::an_arrival_comes_after_the_phase_before,
    mixed::operations_of_two_kinds_at_one_element_are_ordered,
    mixed::operations_that_commute_need_no_order,
    registers::registers_are_shared,
    registers::four_warps_change_registers_together,
    registers::whoever_comes_early_tells_what_it_did,
    registers::one_lane_of_a_warp_is_elected,
    registers::memory_is_left_alone_until_earlier_launches_are_over,
    races::a_read_after_a_write_of_another_thread_needs_a_barrier,
    races::lanes_of_a_warp_need_a_barrier_too,
    races::shuffles_and_ballots_order_no_memory,
    races::a_write_after_a_read_needs_a_barrier,
    races::two_writes_are_a_race,
    races::bytes_of_one_word_are_different_bytes,
    races::many_readers_are_all_remembered,
    races::named_barriers_order_those_who_meet,
    races::knowledge_is_passed_on,
    races::atomic_operations_do_not_race_with_each_other,
    races::blocks_are_not_ordered,
    races::blocks_may_add_to_one_element,
    races::threads_of_a_block_race_in_global_memory,
    races::rows_of_matrices_race_with_stores,
    races::an_atomic_operation_races_with_what_another_block_does,
];
