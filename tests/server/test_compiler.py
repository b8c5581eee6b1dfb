"""The compiler's words in a program's output, and the kernel they are about."""

import pytest

from warp_debug_gradients.operations.compiler import add_compiler_text, kernel_at, place_of
from warp_debug_gradients.schemas import ScriptError

GENERATED = """\
#define float(x) cast_float(x)

struct wp_args_settle_68ac334c {
    wp::array_t<wp::float32> depth;
};
static void settle_68ac334c_cpu_kernel_forward(
    wp_args_settle_68ac334c *_wp_args)
{
}
struct wp_args_wait_a1b2c3d4 {
    wp::array_t<wp::float32> union;
};
static void wait_a1b2c3d4_cpu_kernel_backward(
    wp_args_wait_a1b2c3d4 *_wp_args)
{
    oops;
}
"""
OUTPUT = """\
loss 0.3
{file}:11:30: error: expected member name or ';' after declaration specifiers
   11 |     wp::array_t<wp::float32> union;
      |     ~~~~~~~~~~~~~~~~~~~~~~~~ ^
1 error generated.
Warp: Compilation with PCH failed, retrying without precompiled headers
{file}:11:30: error: expected member name or ';' after declaration specifiers
"""


@pytest.fixture
def generated(tmp_path):
    path = tmp_path / "wp_train_1234567.cpp"
    path.write_text(GENERATED)
    return path


def failed(message="CPU kernel build failed with error code -1"):
    return ScriptError(type="Exception", message=message, advice="")


@pytest.mark.parametrize(("line", "kernel"), [(2, None), (4, "settle"), (8, "settle"), (11, "wait"), (16, "wait")])
def test_the_kernel_of_a_generated_line(generated, line, kernel):
    assert kernel_at(str(generated), line) == kernel


def test_a_name_that_is_a_word_of_cpp(generated):
    error = add_compiler_text(failed(), OUTPUT.format(file=generated))
    assert error.kernel == "wait"
    assert error.compiler_message.startswith("wp_train_1234567.cpp:11:30: error: expected member name")
    assert error.compiler_message.endswith("1 error generated.")  # the second attempt says the same
    assert error.advice.startswith("union is a word of C++")
    assert error.message == "CPU kernel build failed with error code -1"


PROGRAM = """\
@wp.kernel
def wait(
    depth: wp.array(dtype=float),
    union: wp.array(dtype=float),
):
    depth[0] = union[0]


def other(union):
    return union
"""


def test_where_the_name_stands(generated, tmp_path):
    file = tmp_path / "model.py"
    file.write_text(PROGRAM)
    error = add_compiler_text(failed(), OUTPUT.format(file=generated), [tmp_path / "gone.py", file])
    assert (error.named.file, error.named.line) == (str(file), 4)
    twin = tmp_path / "twin.py"
    twin.write_text(PROGRAM)
    assert place_of("union", "wait", [file, twin]) is None  # which of the two, nobody knows
    assert place_of("namespace", "wait", [file]) is None


def test_another_complaint(generated):
    output = f"{generated}:16:5: error: use of undeclared identifier 'oops'\n   16 |     oops;\n      |     ^\n1 error generated.\n"
    error = add_compiler_text(failed(), output)
    assert error.kernel == "wait"
    assert "undeclared identifier 'oops'" in error.compiler_message
    assert "C++ that Warp generated for wait" in error.advice


def test_generated_code_that_is_gone(tmp_path):
    error = add_compiler_text(failed(), OUTPUT.format(file=tmp_path / "gone.cpp"))
    assert error.kernel is None
    assert "expected member name" in error.compiler_message


def test_an_error_that_has_nothing_to_do_with_it(generated):
    """A program may compile something by itself, print its errors, and fail at something else later."""
    error = failed("division by zero")
    assert add_compiler_text(error, OUTPUT.format(file=generated)) == error
    assert add_compiler_text(failed(), "no diagnostics here") == failed()
