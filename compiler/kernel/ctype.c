/* ctype.c - the table of ctype.h. */
#include "compiler/kernel/ctype.h"

const ty_ctype ty_ctypes[TY_N_DTYPES] = {
    [TY_BOOL] = {"unsigned char", "_Bool", "bool", "0", "1"},
    [TY_I8] = {"signed char", "signed char", "i8", "-128", "127"},
    [TY_U8] = {"unsigned char", "unsigned char", "u8", "0", "255"},
    [TY_I16] = {"short", "short", "i16", "-32768", "32767"},
    [TY_U16] = {"unsigned short", "unsigned short", "u16", "0", "65535"},
    [TY_I32] = {"int", "int", "i32", "(-2147483647 - 1)", "2147483647"},
    [TY_U32] = {"unsigned", "unsigned", "u32", "0", "4294967295u"},
    [TY_I64] = {"long", "long", "i64", "(-9223372036854775807L - 1)", "9223372036854775807L"},
    [TY_U64] = {"unsigned long", "unsigned long", "u64", "0", "18446744073709551615ul"},
    [TY_F16] = {"unsigned short", "float", "f32", "-__builtin_inff()", "__builtin_inff()"},
    [TY_BF16] = {"unsigned short", "float", "f32", "-__builtin_inff()", "__builtin_inff()"},
    [TY_F32] = {"float", "float", "f32", "-__builtin_inff()", "__builtin_inff()"},
    [TY_F64] = {"double", "double", "f64", "-__builtin_inf()", "__builtin_inf()"},
};
