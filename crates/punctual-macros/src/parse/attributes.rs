//! Telling the framework's attributes from everyone else's.

use syn::{Attribute, Item};

use crate::errors::Errors;
use crate::model::Role;

/// What an attribute of the framework says an item is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Shared,
    Local,
    Handler(Role),
}

impl Mark {
    pub(super) fn name(self) -> &'static str {
        match self {
            Mark::Shared => "shared",
            Mark::Local => "local",
            Mark::Handler(role) => role.attribute(),
        }
    }

    fn of(attr: &Attribute) -> Option<Self> {
        let marks = [Mark::Shared, Mark::Local]
            .into_iter()
            .chain([Role::Init, Role::Idle, Role::Shutdown, Role::Task].map(Mark::Handler));
        marks.into_iter().find(|mark| attr.path().is_ident(mark.name()))
    }
}

/// Removes the framework's attribute from `attrs`; an item bears one at most.
pub(crate) fn take_mark(attrs: &mut Vec<Attribute>, errors: &mut Errors) -> Option<(Mark, Attribute)> {
    let mut marks = attrs.extract_if(.., |attr| Mark::of(attr).is_some());
    let first = marks.next()?;
    for extra in marks {
        errors.at(extra, "an item bears one attribute of the framework; remove this one or the other");
    }
    Mark::of(&first).map(|mark| (mark, first))
}

/// The `#[cfg]`s among `attrs`.
pub(super) fn cfgs(attrs: &[Attribute]) -> Vec<Attribute> {
    attrs.iter().filter(|attr| attr.path().is_ident("cfg")).cloned().collect()
}

/// The attributes of an item, whatever it is.
pub(crate) fn item_attrs(item: &mut Item) -> Option<&mut Vec<Attribute>> {
    Some(match item {
        Item::Const(item) => &mut item.attrs,
        Item::Enum(item) => &mut item.attrs,
        Item::ExternCrate(item) => &mut item.attrs,
        Item::Fn(item) => &mut item.attrs,
        Item::ForeignMod(item) => &mut item.attrs,
        Item::Impl(item) => &mut item.attrs,
        Item::Macro(item) => &mut item.attrs,
        Item::Mod(item) => &mut item.attrs,
        Item::Static(item) => &mut item.attrs,
        Item::Struct(item) => &mut item.attrs,
        Item::Trait(item) => &mut item.attrs,
        Item::TraitAlias(item) => &mut item.attrs,
        Item::Type(item) => &mut item.attrs,
        Item::Union(item) => &mut item.attrs,
        Item::Use(item) => &mut item.attrs,
        _ => return None,
    })
}
