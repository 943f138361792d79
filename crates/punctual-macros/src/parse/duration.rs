//! Durations. `10.millis()` and the like are evaluated here, any other expression by the compiler.

use syn::{Expr, ExprCall, ExprLit, ExprMethodCall, Lit, LitFloat, LitInt, UnOp};

use super::keys::{Keys, ungrouped};
use crate::errors::Errors;
use crate::model::Duration;
use crate::parse::last_two;
use crate::suggest;

const UNITS: [(&str, u64); 6] = [
    ("nanos", 1),
    ("micros", 1_000),
    ("millis", 1_000_000),
    ("secs", 1_000_000_000),
    ("minutes", 60_000_000_000),
    ("hours", 3_600_000_000_000),
];

const RATES: [(&str, u64); 2] = [("Hz", 1), ("kHz", 1_000)];

const SECOND: u64 = 1_000_000_000;

/// Purpose of a duration, which determines the valid values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// May be a rate, may not be zero.
    Period,
    /// May not be zero.
    Deadline,
    Other,
}

/// Returns whether a method of a number makes a duration of it.
pub(crate) fn is_unit(method: &syn::Ident) -> bool {
    UNITS.iter().any(|(unit, _)| method == unit)
}

/// Returns the duration under the key `name`.
pub(super) fn duration(keys: &Keys, name: &str, purpose: Purpose, errors: &mut Errors) -> Option<Duration> {
    let source = keys.expr(name, errors)?.clone();
    let nanos = errors.take(value(&source, purpose))?;
    if nanos == Some(0) && purpose != Purpose::Other {
        errors.at(&source, format_args!("`{name}` cannot be zero; write a duration such as `10.millis()`"));
    }
    Some(Duration { nanos, source: Box::new(source) })
}

/// Returns the nanoseconds in `source`, or `None` if only the compiler can evaluate it.
fn value(source: &Expr, purpose: Purpose) -> syn::Result<Option<u64>> {
    let error = |message: String| Err(syn::Error::new_spanned(source, message));
    match ungrouped(source) {
        Expr::Lit(ExprLit { lit: Lit::Int(lit), .. }) => {
            error(format!("a duration needs a unit, such as `{lit}.millis()`"))
        }
        Expr::Lit(_) => error("a duration is an integer with a unit, such as `10.millis()`".into()),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
            error("a duration cannot be negative; remove the `-`".into())
        }
        Expr::MethodCall(call) if call.args.is_empty() && call.turbofish.is_none() => {
            match ungrouped(&call.receiver) {
                Expr::Lit(ExprLit { lit: Lit::Int(lit), .. }) => nanos(call, lit, purpose).map(Some),
                Expr::Lit(ExprLit { lit: Lit::Float(count), .. }) => error(format!(
                    "a duration is a whole number of its unit; {}",
                    match whole(count, &call.method.to_string()) {
                        Some(instead) => format!("write `{instead}`"),
                        None => "use a smaller unit".into(),
                    }
                )),
                _ => Ok(None),
            }
        }
        Expr::Call(call) => Ok(short_name(call)),
        _ => Ok(None),
    }
}

/// Evaluates `Duration::millis(10)`, which is not a constant expression, because it is a trait's
/// function.
fn short_name(call: &ExprCall) -> Option<u64> {
    let Expr::Path(path) = ungrouped(&call.func) else { return None };
    let (Some(argument), 1) = (call.args.first(), call.args.len()) else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Int(lit), .. }) = ungrouped(argument) else { return None };
    let (ty, unit) = last_two(&path.path)?;
    let (_, nanos) = UNITS.iter().find(|(name, _)| unit.ident == name)?;
    (ty.ident == "Duration").then(|| lit.base10_parse::<u64>().ok()?.checked_mul(*nanos))?
}

/// Returns a duration with a fraction, in the largest unit in which it is a whole number.
fn whole(count: &LitFloat, unit: &str) -> Option<String> {
    let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let nanos = count.base10_parse::<f64>().ok()? * *nanos as f64;
    if nanos < 1.0 || nanos.fract() != 0.0 || nanos > 1e15 {
        return None;
    }
    let nanos = nanos as u64;
    let (unit, factor) = UNITS.iter().rev().find(|(_, factor)| nanos.is_multiple_of(*factor))?;
    Some(format!("{}.{unit}()", nanos / factor))
}

/// Returns the unit that was probably meant.
fn meant(unit: &str) -> Option<&'static str> {
    match unit {
        "ns" => Some("nanos"),
        "us" => Some("micros"),
        "ms" => Some("millis"),
        "s" | "sec" | "second" | "seconds" => Some("secs"),
        "m" | "min" | "mins" => Some("minutes"),
        "h" | "hour" => Some("hours"),
        _ => suggest::nearest(unit, UNITS.iter().chain(&RATES).map(|(name, _)| *name)),
    }
}

fn nanos(call: &ExprMethodCall, lit: &LitInt, purpose: Purpose) -> syn::Result<u64> {
    let error = |message: String| Err(syn::Error::new_spanned(call, message));
    let count: u64 = lit.base10_parse()?;
    let unit = call.method.to_string();
    if let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) {
        return match count.checked_mul(*nanos) {
            Some(nanos) => Ok(nanos),
            None => error("this duration does not fit in 64 bits of nanoseconds".into()),
        };
    }
    let Some((_, factor)) = RATES.iter().find(|(name, _)| *name == unit) else {
        let units = suggest::list(UNITS.iter().map(|(name, _)| *name));
        let meant = meant(&unit).map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
        let message =
            format!("unknown unit `{unit}`; {meant}the units are {units}, and for a period `Hz`, `kHz`");
        return Err(syn::Error::new_spanned(&call.method, message));
    };
    if purpose != Purpose::Period {
        return error("only a `period` can be a rate; give a duration, such as `10.millis()`".into());
    }
    match count.checked_mul(*factor) {
        Some(0) => error("a rate cannot be zero; write a rate such as `100.Hz()`".into()),
        Some(rate) if SECOND.is_multiple_of(rate) => Ok(SECOND / rate),
        _ => error(format!(
            "a period of {count} {unit} is not a whole number of nanoseconds; give it in nanos"
        )),
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;

    use super::*;
    use crate::testing::{app, assert_one, errors};

    fn period(tokens: &str) -> syn::Result<Option<u64>> {
        value(&syn::parse_str(tokens)?, Purpose::Period)
    }

    #[test]
    fn literals_are_worked_out() {
        for (given, nanos) in [
            ("250.nanos()", 250),
            ("10.micros()", 10_000),
            ("10.millis()", 10_000_000),
            ("2u64.secs()", 2_000_000_000),
            ("(3).minutes()", 180_000_000_000),
            ("1_0.hours()", 36_000_000_000_000),
            ("50.Hz()", 20_000_000),
            ("8.kHz()", 125_000),
            ("3u32.millis()", 3_000_000),
            ("Duration::millis(3)", 3_000_000),
            ("punctual::Duration::hours(1)", 3_600_000_000_000),
        ] {
            match period(given) {
                Ok(Some(value)) => assert_eq!(value, nanos, "{given}"),
                other => panic!("{given}: {other:?}"),
            }
        }
    }

    #[test]
    fn keeps_other_expressions() {
        for given in [
            "PERIOD",
            "Duration::from_ticks(3)",
            "core::time::Duration::from_millis(3)",
            "N.millis()",
            "PERIOD.half()",
            "Duration::millis(N)",
            "Time::millis(3)",
        ] {
            assert!(matches!(period(given), Ok(None)), "{given}");
        }
    }

    #[track_caller]
    fn rejects(keys: TokenStream, part: &str) {
        assert_one(&errors(quote! { #[task(#keys)] fn t(cx: t::Context) {} }), &[part]);
    }

    #[test]
    fn wrong_durations() {
        rejects(quote!(period = 10), "a duration needs a unit, such as `10.millis()`");
        rejects(quote!(period = "10ms"), "an integer with a unit");
        rejects(quote!(period = 1.5.millis()), "a whole number of its unit; write `1500.micros()`");
        rejects(quote!(period = 0.25.nanos()), "use a smaller unit");
        rejects(quote!(period = -1.millis()), "cannot be negative");
        rejects(quote!(period = 0.millis()), "`period` cannot be zero");
        rejects(quote!(deadline = 0.millis()), "`deadline` cannot be zero");
        rejects(
            quote!(period = 10.ms()),
            "unknown unit `ms`; did you mean `millis`? the units are `nanos`, `micros`, `millis`",
        );
        rejects(quote!(period = 6_000_000.hours()), "does not fit in 64 bits");
        rejects(quote!(period = 99999999999999999999.nanos()), "number too large");
    }

    #[test]
    fn wrong_rates() {
        rejects(quote!(period = 0.Hz()), "a rate cannot be zero");
        rejects(quote!(period = 3.Hz()), "a period of 3 Hz is not a whole number of nanoseconds");
        rejects(quote!(deadline = 10.Hz()), "only a `period` can be a rate");
    }

    #[test]
    fn zero_is_an_offset() {
        let app = app(quote! {
            #[shared] struct Shared {}
            #[task(period = 1.secs(), offset = 0.secs())] fn t(cx: t::Context) {}
        });
        assert_eq!(app.tasks.len(), 1);
    }
}
