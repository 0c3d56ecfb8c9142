"""Programs as data: flat jaxprs, what is known of their primitives, and plans for them."""
