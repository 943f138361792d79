//! An app of 40 tasks that spawn each other; see `chain.rs`.

#[macro_use]
#[path = "../chain.rs"]
mod chain;

#[rustfmt::skip]
chain! {
    t00: t01, t01: t02, t02: t03, t03: t04, t04: t05, t05: t06, t06: t07, t07: t08, t08: t09,
    t09: t10, t10: t11, t11: t12, t12: t13, t13: t14, t14: t15, t15: t16, t16: t17, t17: t18,
    t18: t19, t19: t20, t20: t21, t21: t22, t22: t23, t23: t24, t24: t25, t25: t26, t26: t27,
    t27: t28, t28: t29, t29: t30, t30: t31, t31: t32, t32: t33, t33: t34, t34: t35, t35: t36,
    t36: t37, t37: t38, t38: t39, t39: last,
}
