"""Layouts as other systems write them."""

import pytest

import tilewright as tw


def test_a_log_gives_every_layout_with_its_line_and_name() -> None:
    log = "begin\nsA:\tSw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)\ntAgA: gmem_ptr[32b](0x10) o (_4,_8):(_8,_1)\n"
    first, second = tw.read(log)
    assert (first.name, first.line, first.system) == ("sA", 2, "cute-print")
    assert first.value == tw.evaluate("S<3,3,3> o 0 o (8,64):(64,1)")
    assert (first.bits, first.unit) == (16, "elements of 16 bits")
    assert "acts on byte addresses" in first.notes[0]
    assert second.value == tw.Layout((4, 8), (8, 1))
    assert str(second) == "(4,8):(8,1)"


def test_a_width_is_asked_for_and_never_guessed() -> None:
    text = "!cute.ptr<!my.type, smem, align<1024>, S<3,4,3>>"
    with pytest.raises(tw.LayoutError) as refused:
        tw.read(text)
    assert refused.value.code == "E1305"
    assert str(tw.read(text, bits=16)[0]) == "S<3,3,3>"


def test_a_mesh_is_asked_for() -> None:
    with pytest.raises(tw.LayoutError) as refused:
        tw.read("PartitionSpec('x', None)", shape=[8, 6])
    assert refused.value.code == "E1305"
    read = tw.read("PartitionSpec('x', None)", shape=[8, 6], mesh="x=2:4,y=4:1")
    assert "@x" in str(read[0])
    with pytest.raises(ValueError):
        tw.read("PartitionSpec('x', None)", shape=[8, 6], mesh="2x4")


def test_a_system_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="cute-cpp"):
        tw.read("(_4,_8):(_8,_1)", system="qute")


def test_text_without_layouts() -> None:
    assert tw.read("nothing to see\n") == []


MMA = "#ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, warpsPerCTA = {}, instrShape = [16, 8]}}>"


def triton(warps: list[int]) -> str:
    return f"tensor<64x32xf32, {MMA.format(warps)}>"


def test_what_is_written_reads_back_as_the_same_function() -> None:
    layout = tw.evaluate("S<3,3,3> o 0 o (64,64):(64,1)")
    for system in ("cute-cpp", "cute-dsl"):
        text = tw.write(layout, system)
        assert tw.same(layout, text), text
    assert tw.write(layout, "triton").startswith("#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8")
    assert tw.write((4, 8), "torch") == "torch.Size([4, 8])"
    fragment = tw.read(triton([4, 1]))[0]
    assert tw.same(fragment, tw.write(fragment, "gluon")), "a reading is an argument as its text is"


def test_what_a_system_cannot_say_is_refused() -> None:
    with pytest.raises(tw.LayoutError) as refused:
        tw.write("((2,2),4):((1,8),2)", "torch")
    assert refused.value.code == "E1304"
    with pytest.raises(ValueError, match="cute-cpp"):
        tw.write("(4,8):(8,1)", "qute")
    with pytest.raises(tw.LayoutError) as wrong:
        tw.write("(4,8):(8,", "torch")
    assert wrong.value.code.startswith("E02")


def test_two_layouts_are_one_function_or_differ_at_a_place() -> None:
    assert tw.same("(_4,_8):(_8,_1)", tw.Layout((4, 8), (8, 1)))
    found = tw.same("S[(4, 8) : (8, 1)]", "(4,8):(8,2)")
    assert not found
    assert found.difference == "at (0,1) the first has 1 and the second 2"
    assert (found.route, found.instructions) == (None, None)
    # Who holds what of an accumulator, counted from the layout itself at every thread and value.
    cute = tw.Layout(((4, 8, 4), (2, 2, 8)), ((128, 1, 16), (64, 8, 512)))
    hopper = "tensor<64x64xf32, #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>>"
    found = tw.same(cute, hopper)
    assert found and found.difference is None
    assert str(found) == "one function: 128 threads hold 32 values each of the 64x64 tile"


def test_other_threads_say_what_moves_the_data() -> None:
    found = tw.same(triton([4, 1]), triton([1, 4]))
    assert not found
    assert found.route == "shared memory"
    assert found.instructions is not None and found.instructions > 0
    with pytest.raises(ValueError, match="8, 16, 32 or 64"):
        tw.same("(4,8):(8,1)", "(4,8):(8,1)", bits=7)
    with pytest.raises(tw.LayoutError):
        tw.same("(4,8):(8,1)", "8")
