"""Layouts as other systems write them."""

import pytest

import tilewright as tw


def test_a_log_gives_every_layout_with_its_line_and_name():
    log = "begin\nsA:\tSw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)\ntAgA: gmem_ptr[32b](0x10) o (_4,_8):(_8,_1)\n"
    first, second = tw.read(log)
    assert (first.name, first.line, first.system) == ("sA", 2, "cute-print")
    assert first.value == tw.evaluate("S<3,3,3> o 0 o (8,64):(64,1)")
    assert (first.bits, first.unit) == (16, "elements of 16 bits")
    assert "acts on byte addresses" in first.notes[0]
    assert second.value == tw.Layout((4, 8), (8, 1))
    assert str(second) == "(4,8):(8,1)"


def test_a_width_is_asked_for_and_never_guessed():
    text = "!cute.ptr<!my.type, smem, align<1024>, S<3,4,3>>"
    with pytest.raises(tw.LayoutError) as refused:
        tw.read(text)
    assert refused.value.code == "E1305"
    assert str(tw.read(text, bits=16)[0]) == "S<3,3,3>"


def test_a_system_that_does_not_exist():
    with pytest.raises(ValueError, match="cute-cpp"):
        tw.read("(_4,_8):(_8,_1)", system="qute")


def test_text_without_layouts():
    assert tw.read("nothing to see\n") == []
