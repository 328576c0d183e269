//! Enumerations of named choices.

/// Declares an enumeration whose values have ids: `ALL`, `id`, `title`, `Display` and the JSON form, which is the id.
/// With a field, as in `Style of Field::Style`, also `FromStr`, which refuses an unknown id with that field's problem.
/// Each value is `Variant "id"` or `Variant "id" "title"`; without a title, the id is the title.
macro_rules! choices {
    ($(#[$meta:meta])* $name:ident $(of Field::$field:ident)? {
        $($(#[$doc:meta])* $variant:ident $id:literal $($title:literal)?,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        // utoipa does not see the names of the variants, which here are the ids in snake case.
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$doc])* #[serde(rename = $id)] $variant,)* }

        impl $name {
            /// Every value, in order.
            pub const ALL: [$name; [$($id),*].len()] = [$($name::$variant,)*];

            /// Returns the name in flags, files, links and JSON.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $($name::$variant => $id,)* }
            }

            /// Returns the name for people.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $($name::$variant => $crate::choices::title!($id $($title)?),)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.id())
            }
        }

        $(impl std::str::FromStr for $name {
            type Err = $crate::problem::Problem;

            fn from_str(text: &str) -> Result<$name, $crate::problem::Problem> {
                let wanted = text.trim().to_ascii_lowercase();
                $name::ALL.into_iter().find(|choice| choice.id() == wanted).ok_or_else(|| {
                    let field = $crate::field::Field::$field;
                    $crate::problem::Problem::unknown(field, text, $name::ALL.map($name::id))
                })
            }
        })?
    };
}

macro_rules! title {
    ($id:literal) => {
        $id
    };
    ($id:literal $title:literal) => {
        $title
    };
}

pub(crate) use {choices, title};
