//! The partitions of an app: `partitions = [control, fast(cpu = 3, poll)]`.

use proc_macro2::{Group, TokenStream};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Ident, LitBool, token};

use super::keys::{Keys, not_quoted};
use super::table::{Key, Value};
use super::{args, separated, size};
use crate::errors::Errors;
use crate::model::PartitionArgs;

const KEYS: &[Key] = &[
    args::CPU,
    args::STACK,
    Key::new("poll", Value::Flag, "off", "a thread that never sleeps and never enters the kernel"),
];

/// Parses the entries, some of which may have the same name.
pub(super) fn parse(keys: &Keys, errors: &mut Errors) -> Vec<PartitionArgs> {
    let Some(list) = keys.list("partitions", errors) else { return Vec::new() };
    let entries = separated(entry, list, errors);
    let parsed = entries.into_iter().map(|(ident, keys)| {
        let keys = Keys::parse(&format!("the partition `{ident}`"), keys, KEYS, errors);
        let poll = keys.boolean("poll", errors).as_ref().is_some_and(LitBool::value);
        let (cpu, stack) = (args::cpu(&keys, errors), size::stack(&keys, errors));
        PartitionArgs { ident, cpu, stack, poll }
    });
    parsed.collect()
}

fn entry(input: ParseStream<'_>) -> syn::Result<(Ident, TokenStream)> {
    not_quoted(input)?;
    let ident: Ident = input.parse().map_err(|error: syn::Error| {
        syn::Error::new(
            error.span(),
            "write the name of a partition, as in `partitions = [control, io(cpu = 2)]`",
        )
    })?;
    let keys = if input.peek(token::Paren) { input.parse::<Group>()?.stream() } else { TokenStream::new() };
    // Its name is without `r#`: in PUNCTUAL_CPU, and as the name of a thread.
    Ok((ident.unraw(), keys))
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::errors::Errors;
    use crate::parse::args;

    #[test]
    fn names_with_and_without_keys() {
        let mut errors = Errors::default();
        let args = args(quote!(partitions = [control, io(cpu = 2), r#loop(cpu = 3, poll)]), &mut errors);
        errors.finish().expect("the arguments are right");
        let read = |p: &super::PartitionArgs| (p.ident.to_string(), p.cpu.is_some(), p.poll);
        let expected = [("control", false, false), ("io", true, false), ("loop", true, true)];
        assert_eq!(
            args.partitions.iter().map(read).collect::<Vec<_>>(),
            expected.map(|(name, cpu, poll)| (name.to_owned(), cpu, poll))
        );
    }

    #[test]
    fn rejects_invalid_partition_options() {
        let mut errors = Errors::default();
        args(quote!(partitions = [a(strict), 7, b(cpu = "1")]), &mut errors);
        let all = errors.finish().expect_err("there are three mistakes");
        let messages: Vec<String> = all.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(messages.len(), 3, "{messages:#?}");
        assert!(messages.iter().any(|m| m.contains("the keys are `cpu`, `stack`, `poll`")), "{messages:#?}");
    }
}
