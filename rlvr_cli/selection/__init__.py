"""What `select` decides by: each problem's history, the methods, and the shares of a mix."""
