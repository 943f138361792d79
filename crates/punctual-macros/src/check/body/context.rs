//! Uses of the context that have no meaning: parts that it does not have, and resources that the
//! handler does not list.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Ident, Member, PatStruct};

use super::Body;
use crate::model::{Role, TaskKind};
use crate::parse::last_two;
use crate::suggest;

const CREATED_BY_INIT: &str =
    "`init` creates the shared resources; work on the values before it returns them";

impl Body<'_> {
    pub(super) fn part_of_context(&mut self, name: &Ident) {
        let (handler, given) = (self.handler, name.to_string());
        let of_rtic = match &*given {
            "device" | "core" | "peripherals" => {
                "there are no peripherals; open the devices of the task in `init`, and pass them \
                 in the `#[local]` \
                 struct"
            }
            "resources" => "write `cx.shared.x` and `cx.local.x`",
            "cs" => {
                "there are no interrupts to disable; `init` runs before every task, and `lock` excludes tasks later"
            }
            "spawn" | "schedule" => {
                "write `task::spawn(..)`, `task::spawn_after(..)` or `task::spawn_at(..)`"
            }
            "start" | "scheduled" => {
                "the release time of a periodic task is `cx.released`; `punctual::now()` is the \
                 current time"
            }
            "monotonics" => "the clock is `CLOCK_MONOTONIC`, see `punctual::now`",
            _ => "",
        };
        if !of_rtic.is_empty() {
            self.errors.at(name, format_args!("`{name}` is a part of RTIC's contexts: {of_rtic}"));
            return;
        }
        let task = self.app.task(handler);
        let is_periodic = task.is_some_and(|task| matches!(task.kind, TaskKind::Periodic { .. }));
        let parts = [
            ("shared", !handler.shared.is_empty()),
            ("local", !handler.locals.is_empty()),
            ("released", is_periodic),
            ("local_spawner", self.analysis.local_level(self.app, handler).is_some()),
        ];
        let is_part = |part: &&(&'static str, bool)| part.1;
        if given.starts_with('_') || parts.iter().filter(is_part).any(|(part, _)| *part == given) {
            return;
        }
        let (user, role) = (&handler.ident, handler.role.attribute());
        let message = match &*given {
            "shared" if handler.role == Role::Init => CREATED_BY_INIT.to_owned(),
            "shared" | "local" => format!(
                "`{user}` lists no {given} resources; list those it uses: `#[{role}({given} = [..])]`"
            ),
            "released" => format!(
                "only the context of a periodic task has a release time; use `punctual::now()`, or give `{user}` a \
                 `period`"
            ),
            "local_spawner" => format!(
                "`{user}` cannot start local tasks: no task with `local_task` has its partition and `priority`"
            ),
            _ => {
                let parts = || parts.iter().filter(is_part).map(|(part, _)| *part);
                let meant = suggest::meant(&given, parts());
                let stop = if meant.is_empty() { ";" } else { "" };
                let list = match parts().next() {
                    None => "it has none".to_owned(),
                    Some(_) => format!("it has {}", suggest::list(parts())),
                };
                format!("the context of `{user}` has no part `{name}`{meant}{stop} {list}")
            }
        };
        self.errors.at(name, message);
    }

    /// Checks a pattern that takes a context, or one of its parts, apart.
    pub(super) fn parts_in(&mut self, pattern: &PatStruct) {
        let Some((module, ty)) = last_two(&pattern.path) else { return };
        let ty = &ty.ident;
        if module.ident != self.handler.ident {
            return;
        }
        let members = pattern.fields.iter().filter_map(|field| match &field.member {
            Member::Named(name) if !name.to_string().starts_with('_') => Some(name),
            _ => None,
        });
        for name in members {
            match ty.to_string().as_str() {
                "Context" => self.part_of_context(name),
                "SharedResources" => self.unlisted("shared", name),
                "LocalResources" => self.unlisted("local", name),
                _ => {}
            }
        }
    }

    /// Reports a resource that is used but not listed.
    pub(super) fn unlisted(&mut self, part: &str, name: &Ident) {
        let (app, handler) = (self.app, self.handler);
        let (listed, declared): (Vec<&Ident>, Vec<&Ident>) = match part {
            "shared" => (
                handler.shared.iter().map(|used| &used.ident).collect(),
                app.shared.resources.iter().map(|resource| &resource.ident).collect(),
            ),
            "local" => (
                handler.locals.iter().map(|used| &used.ident).collect(),
                app.local.fields.iter().map(|field| &field.ident).collect(),
            ),
            _ => return,
        };
        if listed.contains(&name) {
            return;
        }
        let (task, role) = (&handler.ident, handler.role.attribute());
        let message = if handler.role == Role::Init {
            match part {
                "shared" => CREATED_BY_INIT.to_owned(),
                _ => format!(
                    "declare `{name}` in the attribute: `#[init(local = [{name}: <type> = <expression>])]`"
                ),
            }
        } else if declared.contains(&name) {
            let list = listed.iter().map(|name| name.to_string()).chain([name.to_string()]);
            let list = list.collect::<Vec<_>>().join(", ");
            format!(
                "`{task}` uses `{name}` without listing it; add it to the attribute: `#[{role}({part} = [{list}])]`"
            )
        } else if let Some(place) = self.other_part(part, name) {
            let context = self.context.map_or_else(|| "cx".to_owned(), Ident::to_string);
            let (other, list) = if part == "shared" { ("local", "shared") } else { ("shared", "local") };
            format!(
                "`{name}` is a {other} resource, a field of `{place}`; write `{context}.{other}.{name}`, not \
                 `{context}.{list}.{name}`"
            )
        } else {
            let all = listed.iter().chain(&declared).map(|name| name.to_string()).collect::<Vec<_>>();
            let meant = suggest::meant(&name.to_string(), all.iter().map(String::as_str));
            let place = if part == "shared" { &app.shared.item.ident } else { &app.local.item.ident };
            format!(
                "no {part} resource is named `{name}`{meant}{stop} declare it in `{place}`, and list it: \
                 `#[{role}({part} = [{name}])]`",
                stop = if meant.is_empty() { ";" } else { " Or" }
            )
        };
        self.errors.at(name, message);
    }

    /// Returns the struct of the other kind of resources, if it declares `name` and this part does
    /// not.
    fn other_part(&self, part: &str, name: &Ident) -> Option<&Ident> {
        match part {
            "shared" => self.app.local_field(name).map(|_| &self.app.local.item.ident),
            _ => self.app.resource(name).map(|_| &self.app.shared.item.ident),
        }
    }

    /// Checks the tokens of a macro that are not a list of expressions: only unlisted names are
    /// found.
    pub(super) fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for token in &tokens {
            if let TokenTree::Group(group) = token {
                self.tokens(group.stream());
            }
        }
        let is = |token: &TokenTree, text: &str| token.to_token_stream().to_string() == text;
        let Some(context) = self.context.map(Ident::to_string) else { return };
        for window in tokens.windows(5) {
            let [first, dot, TokenTree::Ident(part), second_dot, TokenTree::Ident(name)] = window else {
                continue;
            };
            if is(first, &context) && is(dot, ".") && is(second_dot, ".") {
                self.unlisted(&part.to_string(), name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::super::tests::in_body;
    use crate::testing::{assert_one, errors};

    #[test]
    fn resource_used_but_not_listed() {
        for (body, list) in [
            (quote!(cx.shared.other.lock(|_| ());), "`#[task(shared = [count, table, free, other])]`"),
            (quote!(*cx.local.spare += 1;), "`#[task(local = [line, spare])]`"),
            (quote!(println!("{:?}", cx.local.spare);), "`#[task(local = [line, spare])]`"),
            (quote!(select! { x => cx.local.spare };), "`#[task(local = [line, spare])]`"),
        ] {
            assert_one(&in_body(body), &["without listing it; add it to the attribute", list]);
        }
        assert_one(&in_body(quote!(cx.shared.cuont.lock(|_| ());)), &["did you mean `count`?"]);
        assert_one(&in_body(quote!(cx.local.zoom;)), &["no local resource is named `zoom`", "`Local`"]);
    }

    #[test]
    fn parts_of_rtic_contexts() {
        for (body, answer) in [
            (quote!(let p = cx.device;), "open the devices of the task in `init`"),
            (quote!(cx.core.SYST;), "open the devices of the task in `init`"),
            (quote!(cx.resources.x;), "write `cx.shared.x`"),
            (quote!(cx.spawn.t();), "write `task::spawn(..)`"),
            (quote!(let t = cx.scheduled;), "`cx.released`"),
        ] {
            assert_one(&in_body(body), &["RTIC's", answer]);
        }
    }

    #[test]
    fn resource_of_the_other_kind() {
        assert_one(&in_body(quote!(cx.shared.line;)), &["`line` is a local resource", "`cx.local.line`"]);
        assert_one(&in_body(quote!(cx.local.table;)), &["`table` is a shared resource", "`cx.shared.table`"]);
    }

    #[test]
    fn parts_taken_apart() {
        for (body, answer) in [
            (quote!(let t::SharedResources { count, other, .. } = cx.shared;), "[count, table, free, other]"),
            (quote!(let t::LocalResources { lin: line, .. } = cx.local;), "did you mean `line`?"),
            (quote!(let self::t::Context { shared, released, .. } = cx;), "give `t` a `period`"),
        ] {
            assert_one(&in_body(body), &[answer]);
        }
        let valid = quote! {
            let t::SharedResources { mut count, table, .. } = cx.shared;
            let t::LocalResources { line, _job } = cx.local;
            let u::Context { anything, .. } = other;
        };
        assert_eq!(in_body(valid), [""; 0]);
        let errors = errors(quote! {
            #[task] fn t(t::Context { local, .. }: t::Context) {}
        });
        assert_one(&errors, &["`t` lists no local resources"]);
    }

    #[test]
    fn parts_that_the_context_does_not_have() {
        for (body, answer) in [
            (quote!(cx.sharde.count;), "no part `sharde`; did you mean `shared`? it has `shared`, `local`"),
            (quote!(let d = cx.deadline;), "no part `deadline`; it has `shared`, `local`"),
            (quote!(let t = cx.released;), "use `punctual::now()`, or give `t` a `period`"),
            (quote!(cx.local_spawner.u();), "no task with `local_task`"),
        ] {
            assert_one(&in_body(body), &[answer]);
        }
        let errors = errors(quote! {
            #[task(period = 1.secs())] fn t(cx: t::Context) { let (at, shared) = (cx.released, cx.shared); }
            #[idle] fn idle(cx: idle::Context) { let x = cx.x; }
        });
        assert_eq!(errors.len(), 2, "{errors:#?}");
        assert!(errors[0].contains("the context of `idle` has no part `x`; it has none"), "{errors:#?}");
        assert!(errors[1].contains("list those it uses: `#[task(shared = [..])]`"), "{errors:#?}");
    }
}
