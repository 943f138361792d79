//! An app of 80 tasks that spawn each other; see `chain.rs`.

#[macro_use]
#[path = "../chain.rs"]
mod chain;

#[rustfmt::skip]
chain! {
    t00: t01, t01: t02, t02: t03, t03: t04, t04: t05, t05: t06, t06: t07, t07: t08, t08: t09,
    t09: t10, t10: t11, t11: t12, t12: t13, t13: t14, t14: t15, t15: t16, t16: t17, t17: t18,
    t18: t19, t19: t20, t20: t21, t21: t22, t22: t23, t23: t24, t24: t25, t25: t26, t26: t27,
    t27: t28, t28: t29, t29: t30, t30: t31, t31: t32, t32: t33, t33: t34, t34: t35, t35: t36,
    t36: t37, t37: t38, t38: t39, t39: t40, t40: t41, t41: t42, t42: t43, t43: t44, t44: t45,
    t45: t46, t46: t47, t47: t48, t48: t49, t49: t50, t50: t51, t51: t52, t52: t53, t53: t54,
    t54: t55, t55: t56, t56: t57, t57: t58, t58: t59, t59: t60, t60: t61, t61: t62, t62: t63,
    t63: t64, t64: t65, t65: t66, t66: t67, t67: t68, t68: t69, t69: t70, t70: t71, t71: t72,
    t72: t73, t73: t74, t74: t75, t75: t76, t76: t77, t77: t78, t78: t79, t79: last,
}
