//! The resource structs, which are destructured when `init` has returned them.

use syn::{Item, Type};

use crate::errors::Errors;
use crate::model::App;

pub(super) fn check(app: &App, errors: &mut Errors) {
    for item in &app.items {
        let Item::Impl(implementation) = item else { continue };
        let Some((None, path, _)) = &implementation.trait_ else { continue };
        let is_drop = path.segments.last().is_some_and(|last| last.ident == "Drop");
        let Type::Path(ty) = &*implementation.self_ty else { continue };
        for name in [&app.shared.item.ident, &app.local.item.ident] {
            if is_drop && ty.path.segments.last().is_some_and(|last| last.ident == *name) {
                errors.at(
                    path,
                    format_args!(
                        "`{name}` is destructured after `init` returns it, so it cannot implement \
                         `Drop`; implement `Drop` for a field, or clean up in `#[shutdown]`"
                    ),
                );
            }
        }
    }
}
